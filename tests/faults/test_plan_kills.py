"""F2 for interviews: a kill after any commit loses no answer and starts no plan twice."""

from __future__ import annotations

import math
import random
import signal
from pathlib import Path

import trio

from takopi.interview.session import decode
from tests.botapi.chats import Chat, Message
from tests.conftest import Figures
from tests.faults.promises import LONG
from tests.faults.rig import FIRST_UPDATE, FaultRig

CHATS = 3
STRIDES = (1,) if LONG else (3, 4, 5)
FEWEST_DEATHS = 12 if LONG else 2
ANSWERS = ("A rewrite", "Safety", "The tests")
WAYS_ON = ("iq:a:", "iq:confirm", "iq:continue")


def task(chat: Chat) -> str:
    return f"plan of {chat.id}"


def session_files(rig: FaultRig) -> list[Path]:
    return sorted((rig.home / "sessions").glob("*-interactive.json"))


def states(rig: FaultRig, chat: Chat) -> list[str]:
    """Of every run that came of the plan of this chat."""
    return [
        state
        for prompt, of_one in rig.runs.items()
        for state in of_one
        if prompt.startswith(task(chat))
    ]


def way_on(message: Message) -> str | None:
    """What leads on from a card: the answer of this test, or else what confirms."""
    for label in message.labels:
        data: str = message.button(label).get("callback_data", "")
        if data.startswith(WAYS_ON) and (not data.startswith("iq:a:") or label in ANSWERS):
            return data
    return None


async def go_on(rig: FaultRig, chat: Chat) -> None:
    """Whatever card comes or is there: press what leads on, and press it again."""
    person = rig.api.person(chat.id)
    done: set[int] = set()
    while True:
        card = await person.sees(
            lambda m: m.id not in done and way_on(m) is not None, within_s=math.inf
        )
        done.add(card.id)
        data = way_on(card)
        for _ in range(2):
            if data is not None:
                await person.press_data(card, data)


async def plan_where_nothing_is(rig: FaultRig, chats: list[Chat]) -> None:
    """What was taken when takopi died is not done again: people send it again."""
    sent = rig.api.updates.next_id - FIRST_UPDATE
    waiting = rig.rows("SELECT 1 FROM inbox WHERE state = 'new'")
    if waiting or rig.rows("SELECT count(*) FROM inbox")[0][0] < sent:
        return
    for chat in chats:
        named = rig.home / "sessions" / f"{chat.id}-interactive.json"
        if not named.exists() and not states(rig, chat):
            await rig.api.person(chat.id).send(chat, f"/plan {task(chat)}")


async def until_dead_or_planned(rig: FaultRig, chats: list[Chat]) -> bool:
    """Until the daemon dies by itself; False if every plan has been carried out before."""
    assert rig.process is not None
    process = rig.process

    def is_planned() -> bool:
        return all(states(rig, chat) for chat in chats) and rig.is_over

    await rig.until_so(
        lambda: process.poll() is not None or is_planned(),
        lambda: f"neither dead nor planned: {rig.runs}\n{rig.log[-3000:]}",
    )
    if process.poll() is None:
        return False
    assert process.returncode == -signal.SIGKILL, rig.log[-3000:]
    rig.process = None
    return True


async def test_f2_a_kill_after_any_commit_loses_no_answer_of_a_plan_and_starts_it_once(
    rig: FaultRig, figures: Figures
) -> None:
    chats = rig.open_chats(CHATS)
    deaths = commits = 0
    is_dead = True
    while is_dead:
        commits += random.choice(STRIDES)
        await plan_where_nothing_is(rig, chats)
        rig.launch("--die-at-commit", str(commits))
        async with trio.open_nursery() as people:
            for chat in chats:
                people.start_soon(go_on, rig, chat)
            is_dead = await until_dead_or_planned(rig, chats)
            people.cancel_scope.cancel()
        deaths += is_dead
        for file in session_files(rig):
            decode(file.read_bytes())
    await rig.kill()
    await rig.start()
    await rig.until_over()

    assert deaths >= FEWEST_DEATHS
    assert session_files(rig) == []
    for chat in chats:
        assert len(states(rig, chat)) == 1, rig.runs
        (prompt,) = [prompt for prompt in rig.runs if prompt.startswith(task(chat))]
        (brief,) = rig.folder.glob(f"*/.claude/todos/plan-of-{chat.id}/*.md")
        text = brief.read_text(encoding="utf-8")
        for answer in ANSWERS:
            assert f"\nA: {answer}\n" in text
            assert f"\nA: {answer}" in prompt
    figures("F2", plan_commits=commits, plan_deaths=deaths, lost=0, twice=0)
