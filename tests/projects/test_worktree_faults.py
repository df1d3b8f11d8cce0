from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused
from takopi.projects.worktrees import Worktrees
from tests.projects.repos import (
    add_hook,
    branches,
    clone,
    commit_file,
    head_of,
    make_repo,
    prepare,
    project_at,
    run_git,
    write,
)

DEADLINE_S = 120


def leftovers(repo: Path) -> tuple[list[str], list[str], list[str]]:
    """What a creation could leave: branches, registered worktrees, files and folders."""
    trees = run_git(repo, "worktree", "list", "--porcelain").splitlines()
    return (
        branches(repo),
        [line for line in trees if line.startswith("worktree ")],
        sorted(str(path) for path in repo.rglob("*") if ".git" not in path.parts),
    )


async def refused_place(repo: Path, branch: str = "feat") -> Refused:
    before = leftovers(repo)
    with pytest.raises(Refused) as caught:
        await prepare(project_at(repo), branch)
    assert leftovers(repo) == before
    return caught.value


async def test_folder_that_is_in_the_way_is_refused_and_left_alone(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    write(repo / ".worktrees/feat/notes.txt", "mine")
    error = await refused_place(repo)
    assert error.what == f"{repo}/.worktrees/feat is there, but is not a worktree of z80"
    assert "move it away" in error.way_out


async def test_empty_folder_or_file_that_is_in_the_way_is_refused(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / ".worktrees/feat").mkdir(parents=True)
    write(repo / ".worktrees/file", "mine")
    for branch in ("feat", "file"):
        assert "is not a worktree of z80" in (await refused_place(repo, branch)).what


async def test_worktree_of_another_repository_is_refused(tmp_path: Path) -> None:
    repo, other = make_repo(tmp_path / "repo"), make_repo(tmp_path / "other")
    run_git(other, "worktree", "add", "--quiet", "-b", "x", str(repo / ".worktrees/feat"))
    assert "is not a worktree of z80" in (await refused_place(repo)).what


async def test_worktree_inside_another_worktree_is_refused(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    place = await prepare(project_at(repo), "feat")
    run_git(place, "switch", "--quiet", "--create", "other")
    run_git(repo, "branch", "--quiet", "--delete", "--force", "feat")
    error = await refused_place(repo, "feat/deep/er")
    assert f"would lie inside the worktree {place}" in error.what


async def test_worktree_whose_folder_was_removed_is_made_again(tmp_path: Path) -> None:
    project = project_at(make_repo(tmp_path / "repo"))
    place = await prepare(project, "feat")
    tip = commit_file(place, "work.txt", "work")
    shutil.rmtree(place)
    assert await prepare(project, "feat") == place
    assert run_git(place, "rev-parse", "HEAD") == tip


async def test_removed_worktree_that_is_locked_is_refused_in_the_words_of_git(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    place = await prepare(project_at(repo), "feat")
    run_git(repo, "worktree", "lock", str(place))
    shutil.rmtree(repo / ".worktrees")
    assert "locked" in (await refused_place(repo)).what


async def test_branch_that_is_checked_out_elsewhere_is_refused_with_the_place(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "worktree", "add", "--quiet", "-b", "feat", str(tmp_path / "mine"))
    error = await refused_place(repo)
    assert "'feat' is already" in error.what
    assert str(tmp_path / "mine") in error.what


async def test_branch_below_the_name_of_a_branch_is_refused_in_the_words_of_git(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "branch", "feat")
    assert "'refs/heads/feat' exists" in (await refused_place(repo, "feat/deep/er")).what


async def test_repository_that_offers_no_base_is_refused(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", branch="other", commit=False)
    assert (await refused_place(repo)).what == "cannot determine base branch"


async def test_creation_that_a_hook_fails_leaves_no_branch_and_no_folder(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    add_hook(repo, "post-checkout", "echo the hook says no >&2; exit 3")
    error = await refused_place(repo, "feat/deep/er")
    assert "the hook says no" in error.what
    assert not (repo / ".worktrees").exists()


async def test_failed_creation_leaves_a_branch_that_was_there_before(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "branch", "feat")
    add_hook(repo, "post-checkout", "exit 3")
    await refused_place(repo)
    assert "feat" in branches(repo)


async def test_failed_creation_leaves_what_others_have_beside_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    await prepare(project_at(repo), "feat/one")
    add_hook(repo, "post-checkout", "exit 3")
    await refused_place(repo, "feat/two")
    assert head_of(repo / ".worktrees/feat/one") == "feat/one"


async def test_failed_creation_leaves_a_worktree_that_somebody_else_made_just_now(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    place = repo / ".worktrees/feat"
    # The hook runs once git has made the branch, and before it looks at the folder.
    add_hook(
        repo,
        "reference-transaction",
        f"[ $1 = committed ] && mkdir {tmp_path}/once 2>/dev/null || exit 0\n"
        f"unset $(git rev-parse --local-env-vars)\n"
        f"git -C {repo} worktree add --quiet --detach {place}\n"
        f"echo theirs > {place}/theirs.txt",
    )
    with pytest.raises(Refused, match="already exists"):
        await prepare(project_at(repo), "feat")
    assert (place / "theirs.txt").exists()
    assert branches(repo) == ["main"]


async def test_failed_creation_leaves_commits_that_were_made_meanwhile(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    identity = "-c user.name=Ada -c user.email=ada@example.org"
    add_hook(repo, "post-checkout", f"git {identity} commit --quiet --allow-empty -m work; exit 3")
    with pytest.raises(Refused):
        await prepare(project_at(repo), "feat")
    assert run_git(repo, "log", "-1", "--format=%s", "feat") == "work"
    assert not (repo / ".worktrees").exists()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_cancelled_creation_leaves_no_branch_no_folder_and_no_process(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    add_hook(repo, "post-checkout", f"trap '' TERM; echo $$ > {begun}; exec sleep 1000")
    before = leftovers(repo)
    scope = trio.CancelScope()

    async def work() -> None:
        with scope:
            await Worktrees().prepare(project_at(repo), "feat/deep")

    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            pid = int(await trio.to_thread.run_sync(begun.read_text, abandon_on_cancel=True))
            scope.cancel()
    assert scope.cancelled_caught
    assert leftovers(repo) == before
    assert not is_alive(pid)


async def test_git_that_does_not_answer_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    add_hook(repo, "post-checkout", "exec sleep 1000")
    before = leftovers(repo)
    with trio.fail_after(DEADLINE_S):
        with pytest.raises(Refused) as caught:
            await Worktrees(git_s=2).prepare(project_at(repo), "feat")
    assert caught.value.what == "git did not answer within 2 seconds"
    assert leftovers(repo) == before


async def test_f18_twenty_parallel_requests_for_one_branch_all_get_its_worktree(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, "file.txt", "text")
    worktrees, found = Worktrees(), list[Path]()

    async def ask() -> None:
        found.append(await worktrees.prepare(project_at(repo), "feat/same"))

    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
    assert found == [repo / ".worktrees/feat/same"] * 20
    assert branches(repo) == ["feat/same", "main"]


@pytest.mark.parametrize("where", ["local", "origin", "new"])
async def test_f18_twenty_parallel_branches_get_twenty_worktrees_and_nothing_else(
    tmp_path: Path, where: str
) -> None:
    repo = origin = make_repo(tmp_path / "origin")
    commit_file(origin, "file.txt", "text")
    names = [f"feat/{number:02}" for number in range(20)]
    if where != "new":
        for name in names:
            run_git(origin, "branch", name)
    if where == "origin":
        repo = clone(origin, tmp_path / "repo")
    worktrees, found = Worktrees(), dict[str, Path]()

    async def ask(name: str) -> None:
        found[name] = await worktrees.prepare(project_at(repo), name)

    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(ask, name)
    assert found == {name: repo / ".worktrees" / name for name in names}
    assert branches(repo) == [*names, "main"]
    assert sorted(path.name for path in (repo / ".worktrees/feat").iterdir()) == [
        name.removeprefix("feat/") for name in names
    ]
    for name, place in found.items():
        assert (head_of(place), (place / "file.txt").exists()) == (name, True)
        upstream = run_git(repo, "for-each-ref", "--format=%(upstream)", f"refs/heads/{name}")
        assert bool(upstream) == (where == "origin")


async def test_f18_projects_that_share_a_repository_wait_for_each_other(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = (tmp_path / "side").resolve()
    log = tmp_path / "log"
    add_hook(repo, "post-checkout", f"echo in >> {log}; sleep 0.05; echo out >> {log}")
    worktrees = Worktrees()
    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(worktrees.prepare, project_at(repo), f"a{number}")
                nursery.start_soon(worktrees.prepare, project_at(side), f"b{number}")
    assert log.read_text(encoding="utf-8").split() == ["in", "out"] * 10


async def test_f19_index_lock_of_somebody_else_is_not_in_the_way_of_a_worktree(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo")
    commit_file(repo, "file.txt", "text")
    (repo / ".git/index.lock").touch()
    project = project_at(repo)
    place = await prepare(project, "feat")
    assert (place / "file.txt").exists()
    (repo / ".git/worktrees/feat/index.lock").touch()
    assert await prepare(project, "feat") == place


async def test_f19_lock_that_is_in_the_way_is_a_clear_error_and_nothing_stays(
    tmp_path: Path,
) -> None:
    origin = make_repo(tmp_path / "origin")
    run_git(origin, "branch", "feat")
    repo = clone(origin, tmp_path / "repo")
    for lock in ("config.lock", "refs/heads/feat.lock"):
        (repo / ".git" / lock).touch()
        error = await refused_place(repo)
        assert "File exists" in error.what
        (repo / ".git" / lock).unlink()
    assert head_of(await prepare(project_at(repo), "feat")) == "feat"
