from __future__ import annotations

from pathlib import Path

import pytest

from takopi.core.errors import Refused
from takopi.projects.worktrees import Worktrees
from tests.projects.repos import (
    clone,
    commit_file,
    head_of,
    make_repo,
    prepare,
    project_at,
    run_git,
    write,
)


async def test_without_a_branch_the_project_is_worked_on_as_it_is(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    assert await prepare(project_at(repo)) == repo
    assert not (repo / ".worktrees").exists()


async def test_folder_that_is_no_repository_is_fine_without_a_branch(tmp_path: Path) -> None:
    assert await prepare(project_at(tmp_path)) == tmp_path


async def test_branch_of_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not a git repository") as caught:
        await prepare(project_at(tmp_path), "feat")
    assert "git init" in caught.value.way_out


async def test_branch_of_a_project_whose_folder_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="the folder of z80 is not there"):
        await prepare(project_at(tmp_path / "gone"), "feat")


async def test_new_branch_gets_a_worktree_below_the_worktrees_folder(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    place = await prepare(project_at(repo), "feat/name")
    assert place == repo / ".worktrees/feat/name"
    assert head_of(place) == "feat/name"
    assert run_git(place, "rev-parse", "HEAD") == run_git(repo, "rev-parse", "main")


async def test_worktrees_folder_may_be_elsewhere_if_the_config_says_so(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    for number, configured in enumerate(("../trees", str(tmp_path / "others"))):
        place = await prepare(project_at(repo, configured), f"feat{number}")
        assert place == (repo / configured).resolve() / f"feat{number}"
        assert head_of(place) == f"feat{number}"


async def test_project_behind_a_symlink_gets_its_worktrees_in_the_real_place(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    (tmp_path / "link").symlink_to(repo)
    assert await prepare(project_at(tmp_path / "link"), "feat") == repo / ".worktrees/feat"


async def test_new_branch_starts_from_the_configured_base_and_tracks_nothing(
    tmp_path: Path,
) -> None:
    origin = make_repo(tmp_path / "origin")
    run_git(origin, "switch", "--quiet", "--create", "dev")
    tip = commit_file(origin, "dev.txt", "dev")
    run_git(origin, "switch", "--quiet", "main")
    repo = clone(origin, tmp_path / "repo")
    place = await prepare(project_at(repo, base="dev"), "feat")
    assert run_git(place, "rev-parse", "HEAD") == tip
    assert not run_git(repo, "for-each-ref", "--format=%(upstream)", "refs/heads/feat")


async def test_tag_of_the_same_name_is_not_taken_for_the_base(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "tag", "main")
    tip = commit_file(repo, "later.txt", "later")
    place = await prepare(project_at(repo), "feat")
    assert run_git(place, "rev-parse", "HEAD") == tip


async def test_local_branch_is_checked_out_where_it_stands(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "switch", "--quiet", "--create", "feat")
    tip = commit_file(repo, "feat.txt", "feat")
    run_git(repo, "switch", "--quiet", "main")
    place = await prepare(project_at(repo), "feat")
    assert (head_of(place), run_git(place, "rev-parse", "HEAD")) == ("feat", tip)


async def test_branch_that_only_origin_has_is_taken_from_there_and_tracks_it(
    tmp_path: Path,
) -> None:
    origin = make_repo(tmp_path / "origin")
    run_git(origin, "switch", "--quiet", "--create", "feat")
    tip = commit_file(origin, "feat.txt", "feat")
    run_git(origin, "switch", "--quiet", "main")
    repo = clone(origin, tmp_path / "repo")
    place = await prepare(project_at(repo), "feat")
    assert run_git(place, "rev-parse", "HEAD") == tip
    assert run_git(place, "rev-parse", "--abbrev-ref", "@{upstream}") == "origin/feat"


async def test_branch_that_is_checked_out_at_the_root_is_worked_on_in_the_root(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo", branch="trunk")
    assert await prepare(project_at(repo), "trunk") == repo
    assert not (repo / ".worktrees").exists()


async def test_worktree_that_is_there_is_used_again_with_all_that_is_in_it(tmp_path: Path) -> None:
    project = project_at(make_repo(tmp_path / "repo"))
    place = await prepare(project, "feat")
    write(place / "draft.txt", "mine")
    assert await prepare(project, "feat") == place
    assert (place / "draft.txt").read_text(encoding="utf-8") == "mine"


async def test_worktree_whose_engine_switched_the_branch_is_used_again(tmp_path: Path) -> None:
    project = project_at(make_repo(tmp_path / "repo"))
    place = await prepare(project, "feat")
    run_git(place, "switch", "--quiet", "--create", "other")
    assert await prepare(project, "feat") == place
    assert head_of(place) == "other"


async def test_worktrees_folder_is_hidden_from_git_and_no_tracked_file_changes(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, ".gitignore", "*.o\n")
    await prepare(project_at(repo), "feat")
    assert not run_git(repo, "status", "--porcelain")


async def test_project_that_is_a_worktree_itself_gets_worktrees_of_its_own(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    project = project_at((tmp_path / "side").resolve())
    assert await prepare(project, "side") == project.path
    assert await prepare(project, "feat") == project.path / ".worktrees/feat"


async def test_bare_repository_has_worktrees_and_none_at_its_root(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "clone", "--quiet", "--bare", str(repo), str(tmp_path / "bare"))
    project = project_at((tmp_path / "bare").resolve(), "../trees")
    assert await prepare(project, "main") == (tmp_path / "trees/main").resolve()


@pytest.mark.parametrize("branch", ["../x", "/abs", "a/../../x", "-x", ".git/hooks", "a b", ""])
async def test_bad_branch_is_refused_before_any_git_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    repo = make_repo(tmp_path / "repo")
    # With no git to be found, any attempt to run it would be another error.
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="cannot be a branch"):
        await prepare(project_at(repo), branch)


async def test_finding_a_worktree_makes_none(tmp_path: Path) -> None:
    project = project_at(make_repo(tmp_path / "repo"))
    worktrees = Worktrees()
    assert await worktrees.find(project, "feat") is None
    assert not run_git(project.path, "branch", "--list", "feat")
    place = await prepare(project, "feat")
    assert await worktrees.find(project, "feat") == place
    assert await worktrees.find(project, "main") == project.path
