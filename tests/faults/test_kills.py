"""F1 and F2: whatever moment the daemon is killed at, nothing is lost and nothing begins twice."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import trio

from tests.botapi.api import Request
from tests.botapi.chats import Chat, Message
from tests.conftest import Figures
from tests.faults.promises import LONG
from tests.faults.rig import FaultRig, endings

ROUNDS = 200 if LONG else 8
STRIDES = (1,) if LONG else (1, 2, 3)
"""In the long form the kill comes after every commit; in the short one a few are left out."""

FEWEST_DEATHS = 10 if LONG else 3
CHATS = 6
"""They take turns, so that what is told in one waits for no other's pace."""


async def test_f1_no_kill_loses_a_message_or_starts_it_twice(
    rig: FaultRig, figures: Figures
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    chats = rig.open_chats(3)
    sent: dict[str, Message] = {}
    for number in range(ROUNDS):
        rig.launch()
        for chat in chats:
            name = f"r{number}c{chat.id}"
            prompt = f"append starts.txt: {name} then steps 3 every 100ms"
            sent[name] = await rig.api.person(chat.id).send(chat, prompt)
        # Some kills come while takopi starts, most while it works.
        await trio.sleep(moments.uniform(0.2, 3.0))
        await rig.kill()
    await rig.start()
    await rig.until_over()

    runs = {prompt.split()[2]: states for prompt, states in rig.runs.items()}
    lost = [name for name, prompt in sent.items() if not endings(prompt.chat, prompt)]
    twice = [name for name, count in rig.starts.items() if count > 1]
    assert (lost, twice) == ([], [])
    assert {name: len(states) for name, states in runs.items()} == dict.fromkeys(sent, 1)
    assert {state for states in runs.values() for state in states} <= {"done", "interrupted"}
    for name, (state,) in runs.items():
        if state == "done":
            assert rig.starts[name] == 1
        tell_once(sent[name], state)
    interrupted = sum(state == "interrupted" for (state,) in runs.values())
    figures("F1", rounds=ROUNDS, messages=len(sent), interrupted=interrupted, lost=0, twice=0)


def tell_once(prompt: Message, state: str) -> None:
    """One ending; a second one only where nobody could know whether the first arrived."""
    told = endings(prompt.chat, prompt)
    first, *again = [m.text for m in told]
    assert first.removeprefix("(repeated)\n").startswith(f"{state} · "), first
    assert all(text.startswith("(repeated)\n") for text in again), [first, *again]


@asynccontextmanager
async def people_who_allow(rig: FaultRig) -> AsyncGenerator[list[Chat], None]:
    """In each chat somebody allows whatever is asked, and taps twice."""

    async def allow(chat: Chat) -> None:
        person = rig.api.person(chat.id)
        done: set[int] = set()
        while True:
            asked = await person.sees(
                lambda m: "Allow once" in m.labels and m.id not in done, within_s=math.inf
            )
            done.add(asked.id)
            data = asked.button("Allow once")["callback_data"]
            for _ in range(2):
                await person.press_data(asked, data)

    chats = rig.open_chats(CHATS)
    async with trio.open_nursery() as nursery:
        for chat in chats:
            nursery.start_soon(allow, chat)
        try:
            yield chats
        finally:
            nursery.cancel_scope.cancel()


async def ask_for_work(rig: FaultRig, chat: Chat, name: str) -> Message:
    prompt = f"append starts.txt: {name} then ask approval to append starts.txt: {name}+"
    return await rig.api.person(chat.id).send(chat, prompt)


async def test_f2_a_kill_after_any_commit_keeps_the_promises(
    rig: FaultRig, figures: Figures
) -> None:
    sent: dict[str, Message] = {}
    commits = 0
    async with people_who_allow(rig) as chats:
        while True:
            commits += random.choice(STRIDES)
            chat = chats[len(sent) % CHATS]
            sent[f"k{commits}"] = await ask_for_work(rig, chat, f"k{commits}")
            rig.launch("--die-at-commit", str(commits))
            if not await rig.until_dead():
                break
        # The last one would still die at its commit.
        await rig.kill()
        await rig.start()
        retried = await retry_everything(rig, chats)
    check(rig, sent)
    assert len(sent) > FEWEST_DEATHS
    figures("F2", commits=commits, deaths=len(sent) - 1, retried=retried, lost=0, twice=0)


async def test_f2_a_kill_after_any_reply_keeps_the_promises(
    rig: FaultRig, figures: Figures
) -> None:
    sent: dict[str, Message] = {}
    replies = 0
    left = 0

    def count(_request: Request) -> None:
        nonlocal left
        left -= 1
        if left == 0 and rig.process is not None:
            rig.process.kill()

    rig.api.on_reply = count
    async with people_who_allow(rig) as chats:
        while True:
            replies += random.choice(STRIDES)
            left = replies
            chat = chats[len(sent) % CHATS]
            sent[f"k{replies}"] = await ask_for_work(rig, chat, f"k{replies}")
            rig.launch("--quick")
            if not await rig.until_dead():
                break
        rig.api.on_reply = None
        # A kill may be on its way to a daemon that has done everything.
        await rig.kill()
        rig.launch("--quick")
        retried = await retry_everything(rig, chats)
    check(rig, sent)
    assert len(sent) > FEWEST_DEATHS
    figures("F2", replies=replies, deaths=len(sent) - 1, retried=retried, lost=0, twice=0)


async def retry_everything(rig: FaultRig, chats: list[Chat]) -> int:
    """Tap Retry twice wherever it stands; returns how many notices there were."""
    notices = [m for chat in chats for m in chat.messages if "Retry" in m.labels]
    for notice in notices:
        data = notice.button("Retry")["callback_data"]
        for _ in range(2):
            await rig.api.person(notice.chat.id).press_data(notice, data)
    await rig.until_over()
    return len(notices)


def check(rig: FaultRig, sent: dict[str, Message]) -> None:
    """Every message made one run, every tap at most one more, and each ending was told."""
    prompts: Sequence[str] = [row[0] for row in rig.rows("SELECT prompt FROM runs")]
    runs = [prompt.split()[2] for prompt in prompts]
    firsts = rig.rows("SELECT prompt FROM runs WHERE inbox_id IS NOT NULL")
    assert sorted(row[0].split()[2] for row in firsts) == sorted(sent)
    assert not rig.rows("SELECT retry_of FROM runs GROUP BY retry_of HAVING count(retry_of) > 1")
    for name, prompt in sent.items():
        assert endings(prompt.chat, prompt), f"{name} is lost"
        assert rig.starts[name] <= runs.count(name)
        assert rig.starts[f"{name}+"] <= runs.count(name)
