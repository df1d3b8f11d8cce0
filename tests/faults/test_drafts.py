"""A draft, its card and its window survive a kill at any moment; a doubt is told."""

from __future__ import annotations

import math
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from takopi.drafts.machine import PRESS
from tests.botapi.api import Request
from tests.botapi.chats import Message
from tests.botapi.faults import Held
from tests.conftest import Figures
from tests.drafts.tmux_server import Server
from tests.faults.promises import LONG
from tests.faults.rig import PATIENT, FaultRig

STRIDES = (1,) if LONG else (3, 4, 5)
FEWEST_DEATHS = 10 if LONG else 2


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.end()


async def begin(rig: FaultRig, *, more: str = "", command: str = "/draft on") -> None:
    rig.configure(f'{PATIENT}drafts.backend = "demo"\n{more}')
    await rig.start()
    await rig.reply(await rig.say(command), "")
    await rig.stop()


def is_quiet(rig: FaultRig) -> bool:
    return rig.is_over and not rig.rows("SELECT id FROM draft_jobs")


async def until_quiet(rig: FaultRig) -> None:
    await rig.until_so(lambda: is_quiet(rig), lambda: rig.log[-3000:])


def open_drafts(rig: FaultRig) -> list[int]:
    return [row[0] for row in rig.rows("SELECT id FROM drafts")]


async def until_dead(rig: FaultRig) -> bool:
    """Until the daemon dies by itself; False when everything was done before."""
    process = rig.process
    assert process is not None
    await rig.until_so(lambda: process.poll() is not None or is_quiet(rig), lambda: rig.log[-3000:])
    if process.poll() is None:
        return False
    rig.process = None
    return True


def versions(rig: FaultRig) -> list[str]:
    return [row[0] for row in rig.rows("SELECT text FROM draft_versions ORDER BY number")]


async def known_card(rig: FaultRig, text: str) -> Message:
    """The card that the store knows of, once it shows this text."""
    await rig.until_so(
        lambda: bool(rig.rows("SELECT 1 FROM drafts WHERE card_id IS NOT NULL")),
        lambda: rig.log[-3000:],
    )
    ((card_id,),) = rig.rows("SELECT card_id FROM drafts")
    return await rig.sees(lambda m: m.id == card_id and m.text == text and bool(m.labels))


def draft_of(message: Message) -> int | None:
    """The draft that a message has buttons of."""
    for label in message.labels:
        pressed = PRESS.decode(message.button(label).get("callback_data", ""))
        if pressed is not None:
            return pressed.draft
    return None


async def test_kill_after_any_commit_keeps_every_input_the_card_and_the_window(
    rig: FaultRig, server: Server
) -> None:
    server.start()
    more = f'drafts.tmux_socket = "{server.name}"\n'
    await begin(rig, more=more, command="/attach work:0")
    target = rig.rows("SELECT target FROM scopes")
    said: list[str] = []
    commits = 0
    while True:
        commits += random.choice(STRIDES)
        said.append(f"k{commits}")
        await rig.say(said[-1])
        rig.launch("--die-at-commit", str(commits))
        if not await until_dead(rig):
            break
    await rig.kill()
    await rig.start()
    await until_quiet(rig)
    lines = [f"- {name}" for name in said]
    assert versions(rig) == ["\n".join(lines[: n + 1]) for n in range(len(lines))]
    assert rig.rows("SELECT target FROM scopes") == target
    card = await known_card(rig, "\n".join([*lines, "", "tmux: work:0"]))
    assert card.labels == ("Run", "Revert", "Reset")
    await rig.press(card, "Revert")
    await rig.until(lambda _: card.text == "\n".join([*lines[:-1], "", "tmux: work:0"]))
    await rig.press(card, "Run")
    typed = await server.until(b"\x1b[201~\r")
    pasted = "\r".join(lines[:-1]).encode()
    assert typed == b"\x1b[200~" + pasted + b"\x1b[201~\r"
    assert len(said) > FEWEST_DEATHS


async def run_when_ready(rig: FaultRig, text: str) -> None:
    """Press Run, twice, wherever it stands below this text."""
    done: set[int] = set()
    while True:
        card = await rig.ada.sees(
            lambda m: m.id not in done and m.text == text and "Run" in m.labels, within_s=math.inf
        )
        done.add(card.id)
        data = card.button("Run")["callback_data"]
        for _ in range(2):
            await rig.ada.press_data(card, data)


async def is_killed(rig: FaultRig, text: str, *args: str) -> bool:
    """Start a daemon that has two inputs before it, and press Run; False if it runs them alive."""
    rig.launch(*args)
    process = rig.process
    assert process is not None

    def is_done() -> bool:
        ran = rig.rows("SELECT 1 FROM runs WHERE prompt = ?", text)
        return bool(ran) and not open_drafts(rig) and is_quiet(rig)

    async with trio.open_nursery() as people:
        people.start_soon(run_when_ready, rig, text)
        await rig.until_so(lambda: process.poll() is not None or is_done(), lambda: rig.log[-3000:])
        people.cancel_scope.cancel()
    if process.poll() is None:
        await rig.kill()
        return False
    assert process.returncode == -signal.SIGKILL, rig.log[-3000:]
    rig.process = None
    return True


async def finish(rig: FaultRig, number: int, text: str) -> None:
    """Start takopi again: what there was is there, in one card that can be pressed, and runs."""
    await rig.start()
    await until_quiet(rig)
    if open_drafts(rig):
        assert versions(rig) == [f"- a{number}", text]
        card = await known_card(rig, text)
        assert [m for m in rig.chat.bot_messages if draft_of(m) in open_drafts(rig)] == [card]
        await rig.press(card, "Run")
        await rig.until_so(lambda: not open_drafts(rig) and is_quiet(rig), lambda: rig.log[-3000:])
        await rig.until(lambda _: draft_of(card) is None)
    for old in [m for m in rig.chat.bot_messages if draft_of(m) is not None]:
        # It was sent, and takopi died before the card could say so.
        assert (await rig.press(old, "Run")).text == "This draft has moved on."
        await rig.until(lambda _, old=old: draft_of(old) is None)
    await rig.stop()


def check(rig: FaultRig, rounds: int) -> None:
    prompts = [row[0] for row in rig.rows("SELECT prompt FROM runs ORDER BY id")]
    assert prompts == [f"- a{number}\n- b{number}" for number in range(1, rounds + 1)]
    assert rounds > FEWEST_DEATHS


async def test_kill_after_any_commit_leaves_one_card_and_runs_the_draft_once(
    rig: FaultRig, figures: Figures
) -> None:
    await begin(rig)
    commits = rounds = 0
    is_dead = True
    while is_dead:
        rounds += 1
        commits += random.choice(STRIDES)
        await rig.say(f"a{rounds}")
        await rig.say(f"b{rounds}")
        text = f"- a{rounds}\n- b{rounds}"
        is_dead = await is_killed(rig, text, "--die-at-commit", str(commits))
        await finish(rig, rounds, text)
    check(rig, rounds)
    figures("F2", draft_commits=commits, draft_deaths=rounds - 1, lost=0, twice=0)


async def test_kill_after_any_reply_leaves_one_card_and_runs_the_draft_once(
    rig: FaultRig, figures: Figures
) -> None:
    await begin(rig)
    replies = rounds = left = 0
    is_dead = True

    def count(_request: Request) -> None:
        nonlocal left
        left -= 1
        if left == 0 and rig.process is not None:
            rig.process.kill()

    while is_dead:
        rounds += 1
        replies += random.choice(STRIDES)
        left = replies
        await rig.say(f"a{rounds}")
        await rig.say(f"b{rounds}")
        text = f"- a{rounds}\n- b{rounds}"
        rig.api.on_reply = count
        is_dead = await is_killed(rig, text, "--quick")
        rig.api.on_reply = None
        await finish(rig, rounds, text)
    check(rig, rounds)
    figures("F2", draft_replies=replies, draft_deaths=rounds - 1, lost=0, twice=0)


async def test_kill_before_a_card_is_known_leaves_nothing_to_press_on_it(rig: FaultRig) -> None:
    await begin(rig)
    await rig.start()
    await rig.say("one")
    card = await known_card(rig, "- one")
    rig.api.fail(Held(), method="sendMessage", applied=True, times=1)
    await rig.say("/draft show")
    unknown = await rig.sees(lambda m: m is not card and m.text == "- one")
    await rig.kill()
    await rig.start()
    again = await known_card(rig, "- one")
    assert again not in {card, unknown}
    assert [version.buttons for version in unknown.versions] == [()]
    if draft_of(card) is not None:
        # takopi died before it could take the buttons off.
        assert (await rig.press(card, "Reset")).text == "This draft has moved on."
    await rig.until(lambda chat: [m for m in chat.bot_messages if draft_of(m)] == [again])
    assert versions(rig) == ["- one"]


async def test_kill_while_it_types_is_told_and_nothing_is_typed_again(
    rig: FaultRig, server: Server
) -> None:
    server.start()
    more = f'drafts.tmux_socket = "{server.name}"\n'
    await begin(rig, more=more, command="/attach work:0")
    ((target,),) = rig.rows("SELECT target FROM scopes")
    await rig.start()
    await rig.say("one")
    card = await known_card(rig, "- one\n\ntmux: work:0")
    tmux_pid = int(server.tmux("display-message", "-p", "#{pid}"))
    os.kill(tmux_pid, signal.SIGSTOP)
    try:
        await rig.ada.press(card, "Run")
        await rig.until_so(lambda: bool(rig.rows("SELECT 1 FROM draft_jobs WHERE state='sending'")))
        await rig.kill()
    finally:
        os.kill(tmux_pid, signal.SIGCONT)
    await rig.start()
    await rig.reply(card, "stopped while it typed", "/screen")
    await until_quiet(rig)
    assert server.typed.read_bytes() == b""
    assert versions(rig) == ["- one"]
    assert rig.rows("SELECT target FROM scopes") == [(target,)]
    await rig.press(card, "Run")
    assert await server.until(b"\x1b[201~\r") == b"\x1b[200~- one\x1b[201~\r"
