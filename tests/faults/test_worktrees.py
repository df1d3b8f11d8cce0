"""F18, F19 and S3 through the chat: many branches at once, git's locks, and hostile names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import trio

from tests.conftest import Figures
from tests.faults.rig import PATIENT, FaultRig
from tests.projects.repos import branches, run_git

SAME, DIFFERENT = 10, 10
ENDED = "SELECT state FROM runs WHERE state NOT IN ('queued', 'running')"


def with_project(rig: FaultRig) -> Path:
    """A project that all messages of the chat are about, unless they say otherwise."""
    repo = rig.project("z80")
    limits = PATIENT.replace("limits.max_runs = 8", "limits.max_runs = 20")
    rig.configure(f'default_project = "z80"\n{limits}[projects.z80]\npath = "{repo}"\n')
    return repo


async def test_f18_twenty_branches_at_once_get_their_worktrees_and_nothing_else(
    rig: FaultRig, figures: Figures
) -> None:
    repo = with_project(rig)
    await rig.start()
    names = [*["same"] * SAME, *(f"feat/b{number}" for number in range(DIFFERENT))]
    for number, name in enumerate(names):
        await rig.say(f"@{name} append starts.txt: n{number}")
    await rig.until_so(lambda: len(rig.rows(ENDED)) == len(names), lambda: rig.log[-3000:])

    assert Counter(rig.rows("SELECT state FROM runs")) == {("done",): len(names)}
    places = {
        (Path(cwd.decode()), branch) for cwd, branch in rig.rows("SELECT cwd, branch FROM runs")
    }
    assert places == {(repo / ".worktrees" / name, name) for name in names}
    assert sorted(branches(repo)) == sorted({*names, "main"})
    listed = run_git(repo, "worktree", "list", "--porcelain").count("worktree ")
    assert listed == len(places) + 1
    written = Counter(
        line for cwd, _ in places for line in (cwd / "starts.txt").read_text().splitlines()
    )
    assert written == dict.fromkeys((f"n{number}" for number in range(len(names))), 1)
    figures("F18", asked=len(names), done=len(names), stray_branches=0, stray_folders=0)


async def test_f19_a_held_index_lock_is_not_in_the_way(rig: FaultRig, figures: Figures) -> None:
    repo = with_project(rig)
    await rig.start()
    (repo / ".git" / "index.lock").touch()
    began = trio.current_time()
    await rig.answer("@feat append starts.txt: one")
    assert (repo / ".git" / "index.lock").exists(), "it is somebody else's"
    figures("F19", hung=0, took_s=round(trio.current_time() - began, 1))


async def test_f19_a_lock_that_is_in_the_way_is_told_and_leaves_nothing(rig: FaultRig) -> None:
    repo = with_project(rig)
    await rig.start()
    lock = repo / ".git" / "refs" / "heads" / "feat.lock"
    lock.touch()
    failed = await rig.ending(await rig.say("@feat append starts.txt: one"), "error")
    assert "lock" in failed.text
    assert branches(repo) == ["main"]
    assert not (repo / ".worktrees" / "feat").exists()

    lock.unlink()
    await rig.press(failed, "Retry")
    await rig.sees_text("done ·")
    assert (repo / ".worktrees" / "feat" / "starts.txt").read_text() == "one\n"


HOSTILE = ("../out", "a/../../out", "/etc/out", "x/.git/y", "-f", "a..b", "a\\b", ".hidden/x")


async def test_s3_a_hostile_branch_makes_nothing_at_all(rig: FaultRig, figures: Figures) -> None:
    repo = with_project(rig)
    await rig.start()
    before = files_but_takopis(rig)
    for name in HOSTILE:
        refused = await rig.ending(await rig.say(f"@{name} append out.txt: one"), "error")
        assert f"@{name} cannot be a branch" in refused.text
    await rig.until_over()
    assert files_but_takopis(rig) == before
    assert branches(repo) == ["main"]
    figures("S3", hostile_names=len(HOSTILE), files_made=0)


def files_but_takopis(rig: FaultRig) -> set[Path]:
    """Everything in the test's folder that is not takopi's own."""
    own = (rig.home, rig.folder / "log")
    found = rig.folder.rglob("*")
    return {path for path in found if not any(path.is_relative_to(root) for root in own)}
