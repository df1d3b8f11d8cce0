"""A draft, its card and its window survive a kill at any moment; a doubt is told."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.botapi.chats import Message
from tests.drafts.tmux_server import Server
from tests.faults.rig import LONG, PATIENT, FaultRig

STRIDES = (1,) if LONG else (1, 2, 3)
FEWEST_DEATHS = 10 if LONG else 3


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


async def test_kill_after_any_commit_keeps_every_input_once_and_in_order(rig: FaultRig) -> None:
    await begin(rig)
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
    await rig.until_so(lambda: is_quiet(rig), lambda: rig.log[-3000:])
    lines = [f"- {name}" for name in said]
    assert versions(rig) == ["\n".join(lines[: n + 1]) for n in range(len(lines))]
    card = await known_card(rig, "\n".join(lines))
    assert card.labels == ("Run", "Revert", "Reset")
    await rig.press(card, "Revert")
    await rig.until(lambda _: card.text == "\n".join(lines[:-1]))
    assert len(said) > FEWEST_DEATHS


async def test_kill_after_any_commit_of_a_run_starts_it_once(rig: FaultRig) -> None:
    await begin(rig)
    commits, rounds = 0, 0
    while True:
        rounds += 1
        commits += random.choice(STRIDES)
        await rig.start()
        await rig.say(f"r{rounds}")
        card = await known_card(rig, f"- r{rounds}")
        await rig.until_so(lambda: is_quiet(rig))
        await rig.kill()
        await rig.ada.press(card, "Run")
        rig.launch("--die-at-commit", str(commits))
        died = await until_dead(rig)
        if not died:
            await rig.kill()
        await rig.start()
        await rig.until_so(lambda: is_quiet(rig))
        if rig.rows("SELECT id FROM drafts"):
            # It was taken and had no effect yet: whoever presses again is heard.
            card = await known_card(rig, f"- r{rounds}")
            await rig.press(card, "Run")
            await rig.until_so(lambda: not rig.rows("SELECT id FROM drafts") and is_quiet(rig))
        await rig.stop()
        if not died:
            break
    prompts = [row[0] for row in rig.rows("SELECT prompt FROM runs ORDER BY id")]
    assert prompts == [f"- r{number + 1}" for number in range(rounds)]
    assert rounds > FEWEST_DEATHS


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
    await rig.until_so(lambda: is_quiet(rig))
    assert server.typed.read_bytes() == b""
    assert versions(rig) == ["- one"]
    assert rig.rows("SELECT target FROM scopes") == [(target,)]
    await rig.press(card, "Run")
    assert await server.until(b"\x1b[201~\r") == b"\x1b[200~- one\x1b[201~\r"
