from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused
from takopi.projects.review import WorktreeInfo
from takopi.projects.worktrees import Worktrees
from tests.projects.repos import (
    branches,
    commit_file,
    head_of,
    make_repo,
    prepare,
    project_at,
    run_git,
    write,
)

DEADLINE_S = 120


async def listed(repo: Path) -> tuple[WorktreeInfo, ...]:
    with trio.fail_after(DEADLINE_S):
        return await Worktrees().list(project_at(repo))


async def changes(folder: Path, *, limit_bytes: int = 100_000, base: str | None = None) -> str:
    with trio.fail_after(DEADLINE_S):
        return await Worktrees().diff(folder, limit_bytes=limit_bytes, base=base)


async def archive(repo: Path, branch: str, *, force: bool = False) -> None:
    with trio.fail_after(DEADLINE_S):
        await Worktrees().archive(project_at(repo), branch, force=force)


async def test_list_tells_how_each_worktree_stands(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    clean = await prepare(project_at(repo), "clean")
    busy = await prepare(project_at(repo), "feat/busy")
    commit_file(repo, "main.txt", "main")
    commit_file(busy, "one.txt", "one")
    commit_file(busy, "two.txt", "two")
    write(busy / "draft.txt", "x" * 100_000)
    first, second = await listed(repo)
    assert (first.branch, first.path, first.checked_out) == ("clean", clean, "clean")
    assert (first.ahead, first.behind, first.dirty) == (0, 1, False)
    assert (second.branch, second.path, second.checked_out) == ("feat/busy", busy, "feat/busy")
    assert (second.ahead, second.behind, second.dirty) == (2, 1, True)
    assert first.disk_bytes is not None
    assert second.disk_bytes is not None
    assert second.disk_bytes >= first.disk_bytes + 100_000


async def test_diff_sees_a_change_of_the_same_size_in_the_moment_of_the_checkout(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "config", "core.trustctime", "false")
    file, then = repo / "arms.txt", 1_700_000_000_000_000_000
    write(file, "7")
    os.utime(file, ns=(then, then))
    run_git(repo, "add", "arms.txt")
    run_git(repo, "commit", "-m", "Count")
    os.utime(repo / ".git/index", ns=(then, then))
    write(file, "8")
    os.utime(file, ns=(then, then))
    assert "-7\n" in await changes(repo)


async def test_list_of_a_project_without_worktrees_is_empty(tmp_path: Path) -> None:
    assert await listed(make_repo(tmp_path / "repo")) == ()


async def test_list_leaves_out_what_lies_elsewhere_or_is_gone(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "worktree", "add", "--quiet", "-b", "mine", str(tmp_path / "mine"))
    shutil.rmtree(await prepare(project_at(repo), "gone"))
    await prepare(project_at(repo), "feat")
    assert [info.branch for info in await listed(repo)] == ["feat"]


async def test_list_names_a_worktree_by_its_place_and_tells_what_is_checked_out(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(await prepare(project_at(repo), "a"), "switch", "--quiet", "--create", "other")
    run_git(await prepare(project_at(repo), "b"), "switch", "--quiet", "--detach")
    assert [(info.branch, info.checked_out) for info in await listed(repo)] == [
        ("a", "other"),
        ("b", None),
    ]


async def test_broken_worktree_does_not_hide_the_others(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    broken = await prepare(project_at(repo), "broken")
    await prepare(project_at(repo), "whole")
    (repo / ".git/worktrees/broken/HEAD").write_text("nonsense\n", encoding="utf-8")
    write(broken / ".git", "nonsense\n")
    found = {info.branch: info for info in await listed(repo)}
    assert found["whole"].dirty is False
    assert found["broken"].dirty is None


async def test_diff_shows_a_summary_and_the_patch(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, "old.txt", "before\n")
    commit_file(repo, "gone.txt", "going\n")
    write(repo / "old.txt", "after\n")
    (repo / "gone.txt").unlink()
    write(repo / "new/file.txt", "fresh\n")
    said = await changes(repo)
    assert "3 files changed" in said
    for line in ("-before", "+after", "-going", "+fresh", "+++ b/new/file.txt"):
        assert f"\n{line}\n" in said


async def test_diff_of_a_folder_without_changes_is_empty(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, "old.txt", "before\n")
    assert not await changes(repo)


async def test_diff_changes_nothing_that_git_would_notice(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, "old.txt", "before\n")
    write(repo / "staged.txt", "staged\n")
    run_git(repo, "add", "staged.txt")
    write(repo / "new.txt", "new\n")
    index = (repo / ".git/index").read_bytes()
    said = await changes(repo)
    assert "+staged" in said
    assert "+new" in said
    assert (repo / ".git/index").read_bytes() == index
    assert run_git(repo, "status", "--porcelain").splitlines() == ["A  staged.txt", "?? new.txt"]


async def test_diff_leaves_out_what_is_ignored(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, ".gitignore", "*.key\n")
    write(repo / "secret.key", "secret\n")
    assert not await changes(repo)


async def test_diff_does_not_take_a_tracked_file_that_is_ignored_for_removed(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, "kept.key", "kept\n")
    commit_file(repo, ".gitignore", "*.key\n")
    assert not await changes(repo)


async def test_f19_diff_does_not_wait_for_an_index_lock(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, "old.txt", "before\n")
    write(repo / "new.txt", "new\n")
    (repo / ".git/index.lock").touch()
    assert "+new" in await changes(repo)


async def test_diff_before_the_first_commit_shows_everything(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", commit=False)
    write(repo / "new.txt", "new\n")
    assert "+new" in await changes(repo)


async def test_diff_against_a_base_has_the_commits_since(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    place = await prepare(project_at(repo), "feat")
    commit_file(place, "done.txt", "done\n")
    write(place / "open.txt", "open\n")
    commit_file(repo, "later.txt", "later\n")
    said = await changes(place, base="main")
    assert "+done" in said
    assert "+open" in said
    assert "later" not in said


async def test_long_diff_is_cut_at_a_line_and_says_so(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    write(repo / "new.txt", "line\n" * 100_000)
    said = await changes(repo, limit_bytes=1003)
    *lines, last = said.splitlines()
    assert last == "… and more: cut after 1003 bytes"
    assert len(said.encode()) < 1100
    assert lines[-1] == "+line"


async def test_diff_passes_over_a_repository_inside(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    make_repo(repo / "inner", commit=False)
    write(repo / "new.txt", "new\n")
    assert "+new" in await changes(repo)


async def test_diff_of_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not a git repository"):
        await changes(tmp_path)


async def test_archive_removes_the_worktree_and_keeps_the_branch(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    place = await prepare(project_at(repo), "feat/deep/er")
    tip = commit_file(place, "work.txt", "work")
    await archive(repo, "feat/deep/er")
    assert list((repo / ".worktrees").iterdir()) == []
    assert run_git(repo, "rev-parse", "feat/deep/er") == tip
    assert await prepare(project_at(repo), "feat/deep/er") == place
    assert (place / "work.txt").exists()


async def test_archive_leaves_the_worktrees_beside_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    await prepare(project_at(repo), "feat/one")
    await prepare(project_at(repo), "feat/two")
    await archive(repo, "feat/one")
    assert head_of(repo / ".worktrees/feat/two") == "feat/two"


@pytest.mark.parametrize("staged", [False, True])
async def test_archive_refuses_a_dirty_worktree_unless_it_is_confirmed(
    tmp_path: Path, staged: bool
) -> None:
    repo = make_repo(tmp_path / "repo")
    place = await prepare(project_at(repo), "feat")
    write(place / "draft.txt", "mine")
    if staged:
        run_git(place, "add", "draft.txt")
    with pytest.raises(Refused, match="not committed") as caught:
        await archive(repo, "feat")
    assert "confirm" in caught.value.way_out
    assert (place / "draft.txt").exists()
    await archive(repo, "feat", force=True)
    assert not place.exists()
    assert "feat" in branches(repo)


async def test_archive_refuses_to_lose_commits_that_are_on_no_branch(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    place = await prepare(project_at(repo), "feat")
    run_git(place, "switch", "--quiet", "--detach")
    await archive(repo, "feat")
    await prepare(project_at(repo), "feat")
    run_git(place, "switch", "--quiet", "--detach")
    commit_file(place, "loose.txt", "loose")
    with pytest.raises(Refused, match="on no branch"):
        await archive(repo, "feat")
    await archive(repo, "feat", force=True)
    assert not place.exists()


async def test_archive_never_touches_the_folder_of_the_project(tmp_path: Path) -> None:
    main = make_repo(tmp_path / "main")
    run_git(main, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "trees/side"))
    side = tmp_path / "trees/side"
    project = project_at(side, str(tmp_path / "trees"))
    for force in (False, True):
        with trio.fail_after(DEADLINE_S):
            with pytest.raises(Refused, match="is the folder of z80 itself"):
                await Worktrees().archive(project, "side", force=force)
    assert head_of(side) == "side"


async def test_archive_of_what_is_no_worktree_is_refused_even_if_confirmed(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    write(repo / ".worktrees/notes/mine.txt", "mine")
    with pytest.raises(Refused, match="is not a worktree of z80"):
        await archive(repo, "notes", force=True)
    with pytest.raises(Refused, match="has no worktree for @feat"):
        await archive(repo, "feat", force=True)
    with pytest.raises(Refused, match="cannot be a branch"):
        await archive(repo, "../repo", force=True)
    assert (repo / ".worktrees/notes/mine.txt").exists()


async def test_archive_forgets_a_worktree_whose_folder_is_gone(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    place = await prepare(project_at(repo), "feat")
    shutil.rmtree(place)
    await archive(repo, "feat")
    assert str(place) not in run_git(repo, "worktree", "list")


async def test_base_of_a_project_is_what_new_branches_start_from(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "branch", "dev")
    with trio.fail_after(DEADLINE_S):
        assert await Worktrees().find_base(project_at(repo, base="dev")) == "dev"
