"""F2 for sessions: a kill after any commit loses no plan, and carries nothing out twice."""

from __future__ import annotations

import math
import random
import signal
from collections import Counter
from pathlib import Path

import trio

from takopi.turns.plan import Execute, Plan
from takopi.turns.render import render
from takopi.turns.review import decode
from tests.conftest import Figures
from tests.faults.promises import LONG
from tests.faults.rig import PATIENT, FaultRig

STRIDES = (1,) if LONG else (3, 4, 5)
FEWEST_DEATHS = 8 if LONG else 2
NAMES = ("one", "two", "three")
WAYS_ON = ("Approve all", "Continue", "Try again")


def turn(rig: FaultRig) -> Path:
    (found,) = (rig.cwd / ".teddy").glob("*/01")
    return found


def stages(rig: FaultRig) -> list[str]:
    return [decode(state).stage for (state,) in rig.rows("SELECT state FROM reviews")]


async def go_on(rig: FaultRig) -> None:
    """Whatever card is there or comes: press what leads on, and press it again."""
    done: set[int] = set()
    while True:
        card = await rig.ada.sees(
            lambda m: m.id not in done and any(label in m.labels for label in WAYS_ON),
            within_s=math.inf,
        )
        done.add(card.id)
        label = next(label for label in WAYS_ON if label in card.labels)
        data: str = card.button(label)["callback_data"]
        for _ in range(2):
            await rig.ada.press_data(card, data)


async def ask_where_nothing_is(rig: FaultRig, text: str) -> None:
    """What was taken when takopi died is not done again: people send it again."""
    if not rig.rows("SELECT 1 FROM inbox WHERE state = 'new'") and not stages(rig):
        await rig.say(text)


async def until_dead_or(rig: FaultRig, stage: str) -> bool:
    """Until the daemon dies by itself; False if everything has come to that stage before."""
    process = rig.process
    assert process is not None
    await rig.until_so(
        lambda: process.poll() is not None or (stages(rig) == [stage] and rig.is_over),
        lambda: f"neither dead nor {stage}: {stages(rig)}\n{rig.log[-3000:]}",
    )
    if process.poll() is None:
        return False
    assert process.returncode == -signal.SIGKILL, rig.log[-3000:]
    rig.process = None
    return True


async def begin(rig: FaultRig) -> None:
    rig.configure(PATIENT)
    await rig.start()
    await rig.reply(await rig.say("/session new greet"), "has begun")
    await rig.until_over()
    await rig.stop()


async def test_f2_a_kill_after_any_commit_carries_no_action_out_twice(
    rig: FaultRig, figures: Figures
) -> None:
    await begin(rig)
    actions = tuple(Execute(command=f"echo {name} >> ran.txt") for name in NAMES)
    text = render(Plan(title="Count", rationale="Why.", actions=actions))
    (turn(rig) / "plan.md").write_text(text, encoding="utf-8")
    deaths = commits = 0
    is_dead = True
    while is_dead:
        commits += random.choice(STRIDES)
        await ask_where_nothing_is(rig, "/session execute")
        rig.launch("--die-at-commit", str(commits))
        async with trio.open_nursery() as people:
            people.start_soon(go_on, rig)
            is_dead = await until_dead_or(rig, "done")
            people.cancel_scope.cancel()
        deaths += is_dead
    await rig.kill()
    await rig.start()
    await rig.until_over()

    report = (turn(rig) / "report.md").read_text(encoding="utf-8")
    noted = rig.cwd / "ran.txt"
    # What may have run when takopi died is told, and not run again: it may be all of them.
    ran = Counter(noted.read_text().split() if noted.exists() else [])
    in_doubt = report.count("interrupted: it may have run")
    assert deaths >= FEWEST_DEATHS
    assert set(ran.values()) <= {1}
    assert len(ran) + in_doubt >= len(NAMES)
    assert all(f"echo {name} >> ran.txt" in report for name in ran)
    assert len(rig.rows("SELECT 1 FROM reviews")) == 1
    assert not (turn(rig).parent / "02/report.md").exists()
    figures("F2", session_commits=commits, session_deaths=deaths, twice=0)


async def test_f2_a_kill_after_any_commit_loses_no_plan(rig: FaultRig, figures: Figures) -> None:
    await begin(rig)
    deaths = commits = 0
    is_dead = True
    while is_dead:
        commits += random.choice(STRIDES)
        await ask_where_nothing_is(rig, "/session plan Hello there")
        rig.launch("--die-at-commit", str(commits))
        is_dead = await until_dead_or(rig, "review")
        deaths += is_dead
    await rig.kill()
    await rig.start()
    await rig.until_over()
    # Whoever was killed may have left the buttons of an earlier plan, which are of no use.
    card = [m for m in rig.chat.bot_messages if "Approve all" in m.labels][-1]
    assert "Hello there" in (turn(rig) / "plan.md").read_text(encoding="utf-8")
    assert not (rig.cwd / "demo").exists()
    await rig.press(card, "Approve all")
    await rig.sees(lambda m: "Next turn" in m.labels and "SUCCESS" in m.text)
    assert (rig.cwd / "demo/hello-1.txt").read_text() == "Hello there\n"
    assert deaths >= 2
    figures("F2", session_plan_commits=commits, session_plan_deaths=deaths, lost=0)
