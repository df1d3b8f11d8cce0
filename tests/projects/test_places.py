from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.core.errors import Refused
from takopi.projects.places import remove_half_made
from takopi.projects.repository import Repository
from tests.projects.repos import make_repo, prepare, project_at, run_git, write


async def refused(repo: Path, branch: str, worktrees_dir: str = ".worktrees") -> Refused:
    with pytest.raises(Refused) as caught:
        await prepare(project_at(repo, worktrees_dir), branch)
    return caught.value


async def test_s3_worktrees_folder_that_is_a_symlink_out_of_the_project_is_refused(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    (tmp_path / "outside").mkdir()
    (repo / ".worktrees").symlink_to(tmp_path / "outside")
    error = await refused(repo, "feat")
    assert f"leads out of z80, to {tmp_path / 'outside'}" in error.what
    assert "worktrees_dir" in error.way_out
    assert not list((tmp_path / "outside").iterdir())


async def test_s3_worktrees_folder_below_a_symlink_out_of_the_project_is_refused(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    (tmp_path / "outside").mkdir()
    (repo / "deep").symlink_to(tmp_path / "outside")
    assert "leads out of z80" in (await refused(repo, "feat", "deep/er/trees")).what
    assert not list((tmp_path / "outside").iterdir())


async def test_s3_worktrees_folder_inside_the_folder_of_git_is_refused(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / ".worktrees").symlink_to(".git")
    assert "inside git's own folder" in (await refused(repo, "feat")).what


@pytest.mark.parametrize("link", ["feat", "feat/deep", "feat/deep/er"])
@pytest.mark.parametrize("target", ["outside", "nowhere", "repo/.worktrees/other"])
async def test_s3_symlink_on_the_way_to_a_worktree_is_refused(
    tmp_path: Path, link: str, target: str
) -> None:
    repo = make_repo(tmp_path / "repo")
    (tmp_path / "outside").mkdir()
    (repo / ".worktrees/other").mkdir(parents=True)
    place = repo / ".worktrees" / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(tmp_path / target)
    assert "leads to" in (await refused(repo, "feat/deep/er")).what
    assert not list((tmp_path / "outside").iterdir())
    assert not (tmp_path / "nowhere").exists()


async def test_s3_loop_of_symlinks_is_refused(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / ".worktrees").mkdir()
    (repo / ".worktrees/feat").symlink_to("feat")
    assert "is not a worktree" in (await refused(repo, "feat")).what
    (repo / "loop").symlink_to("loop")
    assert "could not create" in (await refused(repo, "feat", "loop")).what


NAMES = st.lists(
    st.sampled_from([
        "a",
        "b",
        "..",
        ".",
        "/",
        "//",
        "-",
        ".git",
        "~",
        "a/b",
        "outside",
        "\\",
        "é",
    ]),
    min_size=1,
    max_size=5,
).map("".join)
ORDINARY = st.sampled_from(["a", "a/b", "a/b/c"])
TARGETS = st.sampled_from([
    *("absent", "folder", "{outside}", "{outside}/new", "..", ".", "{repo}", "{repo}/.git", "a"),
    *("{outside}/../repo/.worktrees", "../outside", "../../outside"),
])


def put(place: Path, target: str, *, top: Path) -> None:
    """Let `place` be a folder, a symlink, or nothing, as far as it can be.

    Nothing is put where an earlier symlink leads out of `top`.
    """
    try:
        if not place.parent.resolve(strict=True).is_relative_to(top):
            return
        if target == "folder":
            place.mkdir()
        elif target != "absent":
            place.symlink_to(target.format(outside=top / "outside", repo=top / "repo"))
    except (OSError, RuntimeError):
        return


def outside_of(repo: Path) -> set[str]:
    """Every path that is neither in the repository's folder nor above it."""
    return {str(path) for path in repo.parent.rglob("*") if not path.is_relative_to(repo)}


@given(
    branch=NAMES | ORDINARY,
    worktrees_dir=st.sampled_from([".worktrees", "deep/trees"]),
    targets=st.tuples(TARGETS, TARGETS, TARGETS),
)
@settings(max_examples=60, deadline=None)
def test_s3_nothing_is_ever_made_outside_the_root(
    branch: str, worktrees_dir: str, targets: tuple[str, str, str]
) -> None:
    with TemporaryDirectory() as folder:
        # Deep enough that no target of a symlink leads out of it.
        top = Path(folder).resolve() / "top"
        repo = make_repo(top / "repo")
        write(top / "outside/keep", "mine")
        (repo / "deep").mkdir()
        home = repo / worktrees_dir
        for place, target in zip((home, home / "a", home / "a/b"), targets, strict=True):
            put(place, target, top=top)
        before = outside_of(repo)
        try:
            made = trio.run(prepare, project_at(repo, worktrees_dir), branch)
        except Refused:
            pass
        else:
            assert made == made.resolve()
            assert made.is_relative_to(repo)
            assert not made.is_relative_to(repo / ".git")
            assert Path(run_git(made, "rev-parse", "--show-toplevel")) == made
        assert outside_of(repo) == before


def test_half_made_worktree_is_removed_with_the_folders_made_for_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo", tmp_path / "repo/.git", bare=False)
    place = tmp_path / "trees/feat/deep"
    write(place / ".git", f"gitdir: {repository.common_dir}/worktrees/deep\n")
    write(place / "file.txt", "half")
    remove_half_made(place, repository, made=(place.parent, place.parent.parent))
    assert not (tmp_path / "trees").exists()


@pytest.mark.parametrize("mark", [None, "gitdir: /elsewhere/.git/worktrees/deep\n"])
def test_folder_of_somebody_else_is_not_taken_for_a_half_made_worktree(
    tmp_path: Path, mark: str | None
) -> None:
    repository = Repository(tmp_path / "repo", tmp_path / "repo/.git", bare=False)
    place = tmp_path / "trees/feat"
    write(place / "file.txt", "mine")
    if mark:
        write(place / ".git", mark)
    remove_half_made(place, repository, made=(place.parent,))
    assert (place / "file.txt").read_text(encoding="utf-8") == "mine"
