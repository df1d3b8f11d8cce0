"""One takopi at a time works on a session, and what was asked and never answered is kept."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused
from takopi.kit.proc import open_keeper
from takopi.turns import journal
from takopi.turns.actions import Bench
from takopi.turns.following import build_next, settle
from takopi.turns.hold import hold, is_held
from takopi.turns.layout import Turn, find_turn
from takopi.turns.machine import everything
from takopi.turns.plan import Chat, Create, Execute, Plan, Read
from takopi.turns.render import render
from takopi.turns.replan import feedback
from takopi.turns.service import (
    Interrupted,
    Invalid,
    Proposal,
    Rules,
    check,
    create_session,
    execute,
    pending_request,
    plan_turn,
    recover,
    replan,
    skip,
)
from tests.cli.command import BIN, DEADLINE_S, Takopi
from tests.turns.terminal import until

ENVIRON = {"PATH": "/usr/bin:/bin"}
GOOD = Plan(title="Good", rationale="", actions=(Create(path="x", content=""),))
FAULTY = Plan(title="Faulty", rationale="", actions=(Read(path="no"),))
BUSY = "somebody is at work on"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_keeper(on_lost=lambda: None) as keeper:
        yield Bench(root=tmp_path, keeper=keeper, environ=ENVIRON, grace_s=0.2)


@pytest.fixture
def turn(tmp_path: Path) -> Turn:
    return create_session(tmp_path, "try-it").latest()


@pytest.fixture
def takopi(tmp_path: Path) -> Takopi:
    takopi = Takopi(tmp_path.resolve(), is_warm=True)
    takopi.write('[oneshot]\nbackend = "demo"\n')
    takopi.cwd = takopi.folder / "project"
    takopi.cwd.mkdir()
    takopi("session", "new", "try-it")
    return takopi


def put(turn: Turn, plan: Plan) -> Proposal:
    turn.path("plan.md").write_text(render(plan), encoding="utf-8")
    found = check(turn, Rules())
    assert isinstance(found, Proposal), found
    return found


async def nobody(system: str, user: str) -> str:
    await trio.lowlevel.checkpoint()
    raise AssertionError("nobody may be asked")


def test_second_execute_of_a_turn_is_refused_while_the_first_is_at_it(takopi: Takopi) -> None:
    turn = find_turn(takopi.cwd)
    wait = Execute(command="while ! test -e go; do sleep 0.02; done; echo 1 >> log")
    put(turn, Plan(title="T", rationale="", actions=(wait,)))
    argv = [BIN / "takopi", "session", "execute", "-y"]
    with subprocess.Popen(
        argv, cwd=takopi.cwd, env=takopi.environ, stdout=subprocess.DEVNULL
    ) as first:
        until(lambda: turn.has(journal.NAME) and b"begin" in turn.path(journal.NAME).read_bytes())
        for verb in (("execute", "-y"), ("resume", "-y"), ("plan", "-m", "x")):
            second = takopi("session", *verb)
            assert second.code == 1
            assert second.err == (
                f"error: {BUSY} {turn.session.name} already\n"
                "  wait until that has ended: session status\n"
            )
        assert "turn 01 (pathfinder) is being worked on" in takopi("session", "status").out
        (takopi.cwd / "go").touch()
        assert first.wait(DEADLINE_S) == 0
    assert (takopi.cwd / "log").read_text("utf-8") == "1\n"


def test_two_that_look_at_once_find_the_same_next_turn(turn: Turn) -> None:
    """Looking takes no lock: whoever looks first after a crash gives the next turn its name."""
    with ThreadPoolExecutor(2) as threads:
        for _ in range(100):
            build_next(turn, (), report_path=None)
            turn.path("report.md").touch()
            assert list(threads.map(settle, [turn, turn])) == [turn.next()] * 2
            turn = turn.next()
    assert {one.name for one in turn.session.folder.glob(".*")} == set()


async def test_two_approvals_of_one_plan_carry_it_out_once(bench: Bench, turn: Turn) -> None:
    plan = Plan(title="T", rationale="", actions=(Execute(command="echo 1 >> log"),))
    first, second = put(turn, plan), put(turn, plan)
    await execute(first, bench, choice=everything(plan))
    with pytest.raises(Refused, match="turn 01 is done"):
        await execute(second, bench, choice=everything(plan))
    with pytest.raises(Refused, match="turn 01 is done"):
        skip(second, message="No.")
    assert (bench.root / "log").read_text("utf-8") == "1\n"
    assert "SUCCESS" in turn.path("report.md").read_text("utf-8")


async def test_nothing_is_done_to_a_session_that_somebody_holds(bench: Bench, turn: Turn) -> None:
    proposal = put(turn, GOOD)
    interrupted = Interrupted(turn, journal.Past(plan=GOOD, choice=everything(GOOD), started=""))
    invalid = Invalid(turn, "T", ("wrong",))

    async def skip_it() -> None:
        await trio.lowlevel.checkpoint()
        skip(proposal, message="")

    steps: list[Callable[[], Awaitable[object]]] = [
        lambda: execute(proposal, bench, choice=everything(GOOD)),
        lambda: recover(interrupted, bench, go_on=True),
        lambda: plan_turn(turn, "Hi", ask=nobody, rules=Rules(), environ=ENVIRON),
        lambda: replan(invalid, ask=nobody, rules=Rules(), environ=ENVIRON),
        skip_it,
    ]
    before = sorted(turn.session.folder.rglob("*"))
    with hold(turn.session):
        assert is_held(turn.session)
        for step in steps:
            with pytest.raises(Refused, match=BUSY):
                await step()
    assert not is_held(turn.session)
    assert sorted(turn.session.folder.rglob("*")) == before


async def test_faulty_plan_is_corrected_once_however_often_it_was_seen(turn: Turn) -> None:
    asked: list[str] = []

    async def ask(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        asked.append(user)
        return render(GOOD)

    turn.path("plan.md").write_text(render(FAULTY), encoding="utf-8")
    found = check(turn, Rules())
    assert isinstance(found, Invalid)
    await replan(found, ask=ask, rules=Rules(), environ=ENVIRON)
    with pytest.raises(Refused, match="turn 01 is done"):
        await replan(found, ask=ask, rules=Rules(), environ=ENVIRON)
    assert len(asked) == 1


async def test_interrupted_turn_is_brought_to_its_report_once(bench: Bench, turn: Turn) -> None:
    put(turn, GOOD)
    journal.append(turn, journal.opening(render(GOOD), everything(GOOD), started="then"))
    first, second = check(turn, Rules()), check(turn, Rules())
    assert isinstance(first, Interrupted)
    assert isinstance(second, Interrupted)
    await recover(first, bench, go_on=True)
    report = turn.path("report.md").read_bytes()
    with pytest.raises(Refused, match="turn 01 is done"):
        await recover(second, bench, go_on=False)
    assert turn.path("report.md").read_bytes() == report


def test_feedback_outlives_a_takopi_that_dies_before_the_corrected_plan(takopi: Takopi) -> None:
    turn = find_turn(takopi.cwd)
    turn.path("plan.md").write_text(render(FAULTY), encoding="utf-8")
    claude = takopi.tools / "claude"
    takopi.write('[oneshot]\nbackend = "cli"\n')
    claude.write_text(f"#!/bin/sh\n: > {takopi.folder}/asked\nsleep 1000\n", encoding="utf-8")
    claude.chmod(0o755)
    argv = [BIN / "takopi", "session", "execute", "-y"]
    with subprocess.Popen(
        argv, cwd=takopi.cwd, env=takopi.environ, stderr=subprocess.DEVNULL
    ) as dying:
        until((takopi.folder / "asked").exists)
        dying.kill()
    assert turn.has("report.md")
    assert not turn.next().has("plan.md")

    heard = takopi.folder / "heard"
    answer = json.dumps({"is_error": False, "result": render(GOOD)})
    (takopi.folder / "answer").write_text(answer, encoding="utf-8")
    claude.write_text(f"#!/bin/sh\ncat > {heard}\ncat {takopi.folder}/answer\n", encoding="utf-8")
    resumed = takopi("session", "resume")
    assert (resumed.code, resumed.out.strip()) == (0, str(turn.next().path("plan.md"))), resumed.err
    assert (
        heard
        .read_text("utf-8")
        .rstrip()
        .endswith(
            "The previous plan failed validation. Please review the errors and the original plan, "
            "then generate a corrected version.\n\n## Validation Errors:\n"
            "- `READ` on `no`: `no` does not exist, or is no file.\n\n"
            f"## Original Faulty Plan:\n````markdown\n{render(FAULTY)}````"
        )
    )
    assert turn.next().meta().replan_of == "01"


async def test_feedback_is_kept_before_anything_else_can_go_wrong(turn: Turn) -> None:
    turn.path("plan.md").write_text("no plan", encoding="utf-8")
    # What the next turn would be told cannot be put together.
    (turn.root / ".teddy/global.context").mkdir()
    found = check(turn, Rules())
    assert isinstance(found, Invalid)
    with pytest.raises(IsADirectoryError):
        await replan(found, ask=nobody, rules=Rules(), environ=ENVIRON)
    assert turn.has("report.md")
    assert pending_request(turn.next()) == feedback(found.errors, "no plan")


async def test_request_that_was_never_answered_is_kept_for_the_next_try(turn: Turn) -> None:
    async def fail(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        raise Refused("no model", way_out="")

    async def answer(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        return render(GOOD)

    assert not pending_request(turn)
    with pytest.raises(Refused, match="no model"):
        await plan_turn(turn, "Hello", ask=fail, rules=Rules(), environ=ENVIRON)
    assert pending_request(turn) == "Hello"
    await plan_turn(turn, "Hello", ask=answer, rules=Rules(), environ=ENVIRON)
    assert not pending_request(turn)
    with pytest.raises(Refused, match="no model"):
        await plan_turn(turn, "Another", ask=fail, rules=Rules(), environ=ENVIRON)
    assert turn.meta().user_request == "Hello"


async def test_request_is_noted_only_with_the_plan_that_answers_it(turn: Turn) -> None:
    put(turn, GOOD)
    before = turn.meta()
    plan = turn.path("plan.md")

    async def answer(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        plan.unlink()
        (plan / "in-the-way").mkdir(parents=True)  # so that the new plan cannot be saved
        return render(GOOD)

    with pytest.raises(IsADirectoryError):
        await plan_turn(turn, "Another", ask=answer, rules=Rules(), environ=ENVIRON)
    assert turn.meta() == before


async def test_turn_after_a_report_has_no_request_of_its_own(bench: Bench, turn: Turn) -> None:
    plan = Plan(title="T", rationale="", actions=(Chat(text="Hi."),))
    await execute(put(turn, plan), bench, choice=everything(plan))
    assert not pending_request(turn.next())
