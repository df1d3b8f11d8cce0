from __future__ import annotations

from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused
from takopi.projects.checkout import Checkout, exclude, find_checkout
from tests.projects.repos import make_repo, run_git

DEADLINE_S = 60


async def looked_at(folder: Path) -> Checkout:
    with trio.fail_after(DEADLINE_S):
        checkout = await find_checkout(folder)
    assert checkout is not None
    return checkout


async def test_main_checkout_is_its_own_main(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    checkout = await looked_at(repo)
    assert (checkout.top, checkout.main, checkout.linked) == (repo, repo, False)
    assert checkout.exclude_file == repo / ".git/info/exclude"


async def test_folder_below_knows_the_top(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / "a/b").mkdir(parents=True)
    checkout = await looked_at(repo / "a/b")
    assert (checkout.top, checkout.linked) == (repo, False)
    assert checkout.exclude_file == repo / ".git/info/exclude"


async def test_linked_worktree_knows_the_main_checkout(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "worktree", "add", "--quiet", "-b", "x", str(tmp_path / "tree"))
    (tmp_path / "tree/sub").mkdir()
    for folder in (tmp_path / "tree", tmp_path / "tree/sub"):
        checkout = await looked_at(folder)
        assert (checkout.top, checkout.main, checkout.linked) == (tmp_path / "tree", repo, True)
        assert checkout.exclude_file == repo / ".git/info/exclude"


async def test_worktree_of_a_bare_repository_has_no_main_checkout(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "clone", "--quiet", "--bare", str(repo), str(tmp_path / "bare"))
    run_git(tmp_path / "bare", "worktree", "add", "--quiet", "-b", "x", str(tmp_path / "tree"))
    checkout = await looked_at(tmp_path / "tree")
    assert (checkout.main, checkout.linked) == (None, True)


async def test_folder_outside_any_repository_is_no_checkout(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        assert await find_checkout(tmp_path) is None


async def test_repository_that_git_will_not_look_at_is_refused_in_its_words(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with pytest.raises(Refused, match="must be run in a work tree"):
        await looked_at(repo / ".git")


async def excluded(folder: Path, worktrees_dir: Path) -> bool:
    checkout = await looked_at(folder)
    with trio.fail_after(DEADLINE_S):
        return await exclude(checkout, worktrees_dir)


async def test_excluded_folder_is_ignored_by_git_and_written_once(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    assert await excluded(repo, repo / ".worktrees")
    assert not await excluded(repo, repo / ".worktrees")
    lines = (repo / ".git/info/exclude").read_text(encoding="utf-8").splitlines()
    assert lines.count("/.worktrees/") == 1
    (repo / ".worktrees").mkdir()
    (repo / ".worktrees/file").touch()
    assert not run_git(repo, "status", "--porcelain")


async def test_exclude_file_without_a_last_line_break_keeps_its_last_line(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / ".git/info/exclude").write_bytes(b"\xff*.o")
    assert await excluded(repo, repo / ".worktrees")
    assert (repo / ".git/info/exclude").read_bytes() == b"\xff*.o\n/.worktrees/\n"


async def test_missing_exclude_file_is_made(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / ".git/info/exclude").unlink(missing_ok=True)
    (repo / ".git/info").rmdir()
    assert await excluded(repo, repo / ".worktrees")
    assert (repo / ".git/info/exclude").read_bytes() == b"/.worktrees/\n"


async def test_folder_that_is_ignored_already_is_left_alone(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / ".gitignore").write_text(".worktrees\n", encoding="utf-8")
    before = (repo / ".git/info/exclude").read_bytes()
    assert not await excluded(repo, repo / ".worktrees")
    assert (repo / ".git/info/exclude").read_bytes() == before


@pytest.mark.parametrize("place", ["../elsewhere", ".", "link"])
async def test_folder_outside_the_repository_is_left_alone(tmp_path: Path, place: str) -> None:
    repo = make_repo(tmp_path / "repo")
    (tmp_path / "elsewhere").mkdir()
    (repo / "link").symlink_to(tmp_path / "elsewhere")
    assert not await excluded(repo, repo / place)


async def test_folder_below_the_top_is_excluded_where_it_is(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / "sub").mkdir()
    assert await excluded(repo / "sub", repo / "sub/.worktrees")
    assert (repo / ".git/info/exclude").read_text(encoding="utf-8").endswith("/sub/.worktrees/\n")


async def test_names_that_are_patterns_to_git_are_taken_literally(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    assert await excluded(repo, repo / "a[b]*c?")
    for name in ("a[b]*c?", "abxc1"):
        (repo / name).mkdir()
        (repo / name / "file").touch()
    assert run_git(repo, "status", "--porcelain") == "?? abxc1/"


async def test_worktree_excludes_for_the_whole_repository(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "worktree", "add", "--quiet", "-b", "x", str(tmp_path / "tree"))
    assert await excluded(tmp_path / "tree", tmp_path / "tree/.worktrees")
    assert not await excluded(repo, repo / ".worktrees")
