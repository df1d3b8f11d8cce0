"""A turn that dies by kill -9 after any step comes to its report, and nothing of it runs twice."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused
from takopi.kit.proc import open_keeper
from takopi.turns import journal
from takopi.turns.actions import Bench
from takopi.turns.following import settle
from takopi.turns.journal import Line
from takopi.turns.layout import Session, Turn, read_context
from takopi.turns.machine import Choice, everything
from takopi.turns.memos import read_memos, write_memos
from takopi.turns.outcome import Done
from takopi.turns.plan import Create, Execute, Memo, Plan, Read
from takopi.turns.render import render
from takopi.turns.service import (
    Interrupted,
    Proposal,
    Rules,
    check,
    create_session,
    execute,
    plan_turn,
    recover,
)

ROOT = Path(__file__).parents[2]
ENVIRON = {"PATH": "/usr/bin:/bin"}
PLAN = Plan(
    title="T",
    rationale="Why.",
    memos=(Memo("+", "Remember."),),
    actions=(
        Create(path="x", content="x\n"),
        Execute(command="echo 1 >> log"),
        Read(path="a.txt"),
        Execute(command="echo 2 >> log"),
    ),
)
BEFORE_REPORT = [
    "opened",
    "remembered",
    *(f"{step} {index}" for index in range(4) for step in ("begun", "done", "ended")),
    "built",
]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_keeper(on_lost=lambda: None) as keeper:
        yield Bench(root=tmp_path, keeper=keeper, environ=ENVIRON, grace_s=0.2)


@pytest.fixture
def turn(tmp_path: Path) -> Turn:
    (tmp_path / "a.txt").write_text("a\n", encoding="utf-8")
    turn = create_session(tmp_path, "try-it").latest()
    turn.path("plan.md").write_text(render(PLAN), encoding="utf-8")
    return turn


async def die_after(turn: Turn, step: str) -> None:
    argv = [sys.executable, "-m", "tests.turns.crash", str(turn.folder), step]
    with trio.fail_after(120):
        died = await trio.run_process(argv, cwd=ROOT, check=False, capture_stderr=True)
    assert died.returncode == -signal.SIGKILL, died.stderr


def interrupted(turn: Turn) -> Interrupted:
    found = check(turn, Rules())
    assert isinstance(found, Interrupted)
    return found


def statuses(done: tuple[Done, ...]) -> list[str]:
    return [one.outcome.status for one in done]


def log(turn: Turn) -> str:
    path = turn.root / "log"
    return path.read_text("utf-8") if path.exists() else ""


def whole(session: Session, *, turns: list[str]) -> bool:
    """Whether there are these turns, and each can be read."""
    return [one.meta().turn_id for one in session.turns()] == turns


@pytest.mark.parametrize("step", BEFORE_REPORT)
async def test_killed_turn_goes_on_and_nothing_runs_twice(
    bench: Bench, turn: Turn, step: str
) -> None:
    await die_after(turn, step)
    assert whole(turn.session, turns=["01"])
    assert not turn.has("report.md")
    await recover(interrupted(turn), bench, go_on=True)
    # What had begun when the process died may have run, so that it is left as it is.
    assert log(turn) == {"begun 1": "2\n", "begun 3": "1\n"}.get(step, "1\n2\n")
    assert (turn.root / "x").exists() == (step != "begun 0")
    assert read_memos(turn.root) == ("Remember.",)
    assert whole(turn.session, turns=["01", "02"])
    report = turn.relative("report.md")
    assert read_context(turn.next().path("turn.context")) == ("a.txt", report)


@pytest.mark.parametrize("step", ["reported", "named"])
async def test_turn_killed_after_its_report_leaves_its_place_to_the_next(
    turn: Turn, step: str
) -> None:
    await die_after(turn, step)
    assert settle(turn).id == "02"
    assert whole(turn.session, turns=["01", "02"])
    assert read_context(turn.next().path("turn.context"))[0] == "a.txt"
    assert log(turn) == "1\n2\n"
    with pytest.raises(Refused, match="turn 01 is done"):
        check(turn, Rules())


@pytest.mark.parametrize("step", ["begun 2", "begun 3", "done 3", "ended 3", "built"])
async def test_turn_killed_again_while_it_goes_on_still_runs_nothing_twice(
    bench: Bench, turn: Turn, step: str
) -> None:
    await die_after(turn, "done 1")
    await die_after(turn, step)
    done = await recover(interrupted(turn), bench, go_on=True)
    assert log(turn) == ("1\n" if step == "begun 3" else "1\n2\n")
    assert done[1].outcome.reason == "interrupted: it may have run"


async def test_interrupted_turn_is_reported_as_failed_without_running_the_rest(
    bench: Bench, turn: Turn
) -> None:
    await die_after(turn, "done 1")
    done = await recover(interrupted(turn), bench, go_on=False)
    assert statuses(done) == ["SUCCESS", "FAILURE", "SKIPPED", "SKIPPED"]
    assert log(turn) == "1\n"
    report = turn.path("report.md").read_text("utf-8")
    assert "- **Overall Status:** FAILURE 🔴" in report
    assert "SKIPPED (skipped: the turn was interrupted)" in report
    assert "a.txt" not in read_context(turn.next().path("turn.context"))


@pytest.mark.parametrize("step", ["opened", "ended 0", "built"])
async def test_turn_reported_as_failed_is_failed_even_if_no_action_was(
    bench: Bench, turn: Turn, step: str
) -> None:
    await die_after(turn, step)
    done = await recover(interrupted(turn), bench, go_on=False)
    assert "FAILURE" not in statuses(done)
    assert "- **Overall Status:** FAILURE 🔴" in turn.path("report.md").read_text("utf-8")


async def test_turn_reported_as_failed_changes_no_memo_any_more(bench: Bench, turn: Turn) -> None:
    await die_after(turn, "opened")
    await recover(interrupted(turn), bench, go_on=False)
    assert read_memos(turn.root) == ()
    assert "### Applied State Changes\n*(none)*" in turn.path("report.md").read_text("utf-8")


async def test_memos_that_were_written_before_the_crash_are_reported(
    bench: Bench, turn: Turn
) -> None:
    await die_after(turn, "opened")
    write_memos(turn.root, ("Remember.",))  # the crash came before that was noted
    await recover(interrupted(turn), bench, go_on=False)
    report = turn.path("report.md").read_text("utf-8")
    assert "### Applied State Changes\n- `[+] Remember.`" in report


async def test_failure_before_the_crash_still_stops_the_rest(bench: Bench, turn: Turn) -> None:
    plan = Plan(
        title="T", rationale="", actions=(Execute(command="exit 3"), Execute(command="echo >> log"))
    )
    turn.path("plan.md").write_text(render(plan), encoding="utf-8")
    await die_after(turn, "ended 0")
    assert statuses(await recover(interrupted(turn), bench, go_on=True)) == ["FAILURE", "SKIPPED"]


async def test_interrupted_turn_is_neither_begun_nor_planned_anew(bench: Bench, turn: Turn) -> None:
    proposal = check(turn, Rules())
    assert isinstance(proposal, Proposal)
    await die_after(turn, "ended 0")
    with pytest.raises(Refused, match="carried out in part"):
        await execute(proposal, bench, choice=everything(PLAN))

    async def ask(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        raise AssertionError("nobody may be asked")

    with pytest.raises(Refused, match="being carried out"):
        await plan_turn(turn, "New", ask=ask, rules=Rules(), environ=ENVIRON)


async def test_plan_that_changes_after_the_crash_changes_nothing_of_what_goes_on(
    bench: Bench, turn: Turn
) -> None:
    await die_after(turn, "ended 0")
    turn.path("plan.md").write_text("something else", encoding="utf-8")
    await recover(interrupted(turn), bench, go_on=True)
    assert log(turn) == "1\n2\n"


async def test_choice_and_changes_of_the_person_outlive_the_crash(bench: Bench, turn: Turn) -> None:
    changed = Execute(command="echo mine >> log")
    choice = Choice(actions=frozenset({3}), edits={3: changed})
    journal.append(turn, journal.opening(render(PLAN), choice, started="then"))
    done = await recover(interrupted(turn), bench, go_on=True)
    assert log(turn) == "mine\n"
    assert not (turn.root / "x").exists()
    assert read_memos(turn.root) == ()
    assert [one.modified for one in done] == [False, False, False, True]


async def test_torn_opening_means_that_nothing_has_begun(bench: Bench, turn: Turn) -> None:
    turn.path(journal.NAME).write_bytes(b'{"plan":"# T')
    proposal = check(turn, Rules())
    assert isinstance(proposal, Proposal)
    done = await execute(proposal, bench, choice=everything(PLAN))
    assert statuses(done) == ["SUCCESS"] * 4


def test_torn_line_does_not_swallow_the_next(turn: Turn) -> None:
    journal.append(turn, journal.opening(render(PLAN), everything(PLAN), started="then"))
    with turn.path(journal.NAME).open("ab") as file:
        file.write(b'{"beg')
    journal.append(turn, Line(begin=1))
    past = journal.read_past(turn)
    assert past is not None
    assert past.unsure == 1


def test_journal_whose_opening_is_damaged_does_not_let_the_plan_run_again(turn: Turn) -> None:
    turn.path(journal.NAME).write_bytes(b'{"plan":"# T\n')
    journal.append(turn, Line(begin=0))
    with pytest.raises(Refused, match="does not say what was approved") as refused:
        check(turn, Rules())
    assert "remove" in refused.value.way_out
