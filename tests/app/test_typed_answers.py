"""Texts that come while what asked for them ends: each is an answer or a run, and never nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from takopi.app.commands.registry import COMMANDS
from takopi.app.router import Router
from takopi.core.errors import Refused
from takopi.core.messages import Arrival, Document, IncomingMessage
from takopi.interview.session import Order
from takopi.store import inbox
from takopi.turns.layout import find_turn
from takopi.turns.plan import Create, Plan
from takopi.turns.ports import Place
from takopi.turns.render import render
from takopi.turns.service import create_session
from tests.app.recording import ADA, CHAT, SOON_S, Arrived, Rig, message_of, open_rig

GOOD = render(Plan(title="Good", rationale="Why.", actions=(Create(path="a.txt", content="a\n"),)))


@asynccontextmanager
async def busy_threads() -> AsyncGenerator[None]:
    """What works in a thread, as everything does that touches files, waits until the end."""
    limiter = trio.to_thread.current_default_thread_limiter()
    holders = [object() for _ in range(int(limiter.total_tokens))]
    for holder in holders:
        await limiter.acquire_on_behalf_of(holder)
    try:
        yield
    finally:
        for holder in holders:
            limiter.release_on_behalf_of(holder)


def open_chat(rig: Rig, nursery: trio.Nursery) -> trio.MemorySendChannel[Arrival]:
    send, receive = trio.open_memory_channel[Arrival](10)
    nursery.start_soon(Router(rig.desk, COMMANDS, rig.registry).serve, receive)
    return send


async def card(rig: Rig, *, label: str) -> Arrived:
    """The card with this button, once it has arrived."""
    with trio.fail_after(SOON_S):
        while True:
            changed = rig.transport.changed
            if found := [each for each in await rig.flush() if label in each.labels]:
                return found[-1]
            await changed.wait()


async def run_of(rig: Rig, message: IncomingMessage) -> str:
    with trio.fail_after(SOON_S):
        while True:
            changed = rig.transport.changed
            for run in await rig.runs():
                if run.prompt_ref == message.ref:
                    return run.prompt
            await changed.wait()


async def say_while_it_ends(rig: Rig, on: Arrived, label: str) -> None:
    """Press a button that ends what waits for a text, and send one before that is through."""
    async with trio.open_nursery() as nursery:
        send = open_chat(rig, nursery)
        message = message_of(77, "hello")
        arrival = Arrival(await rig.receive(message), message)
        async with busy_threads():
            nursery.start_soon(rig.press, on, on.data(label))
            await trio.testing.wait_all_tasks_blocked(0.05)
            await send.send(arrival)
            await trio.testing.wait_all_tasks_blocked(0.05)
        assert await run_of(rig, message) == "hello"
        nursery.cancel_scope.cancel()


async def test_text_right_after_cancel_of_a_plan_is_run(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.desk.interviews.plan(Order(task="tidy up", engine="demo"), CHAT, user_id=ADA)
        await say_while_it_ends(rig, await card(rig, label="A rewrite"), "✖ Cancel")


async def test_text_right_after_quit_of_a_turn_is_run(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        plan, data = await ask_in_turn(rig)
        await rig.press(plan, data)
        await say_while_it_ends(rig, plan, "Quit")


async def test_file_that_comes_with_an_answer_to_a_turn_is_said_to_be_left(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        plan, data = await ask_in_turn(rig)
        await rig.press(plan, data)
        said = replace(message_of(77, "skip that"), documents=(Document("f", "notes.txt"),))
        inbox_id = await rig.receive(said)
        async with trio.open_nursery() as nursery:
            await open_chat(rig, nursery).send(Arrival(inbox_id, said))
            with trio.fail_after(SOON_S):
                while True:
                    changed = rig.transport.changed
                    found = await rig.db.read(lambda conn: inbox.find(conn, inbox_id))
                    if found is not None and found.state == "done":
                        break
                    await changed.wait()
            nursery.cancel_scope.cancel()
        assert [each for each in await rig.flush() if "notes.txt was not taken" in each.text]


async def test_reply_to_a_question_whose_run_ends_meanwhile_is_refused(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        run = await rig.start("ask question")
        asked = await card(rig, label="Blue")
        message = message_of(77, "Green", reply_to=asked.ref.message_id)
        found = await rig.desk.asks.find(message)
        assert found is not None
        await rig.type("/cancel")
        await rig.ended(run)
        with pytest.raises(Refused, match="decided already"):
            await rig.desk.asks.typed(found, message)


async def ask_in_turn(rig: Rig) -> tuple[Arrived, str]:
    """A turn with a plan: its card, and what lets that ask for a text."""
    root = rig.desk.shop.start_cwd
    create_session(root, "greet")
    find_turn(root).path("plan.md").write_text(GOOD, encoding="utf-8")
    turns = await rig.desk.turns.open()
    await turns.execute(Place(CHAT, root))
    shown = await card(rig, label="Quit")
    return shown, shown.data("Skip")
