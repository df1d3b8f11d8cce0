from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from takopi.app.stale import ask_about
from takopi.config.limits import Limits
from takopi.core.ids import InboxId, MessageRef
from takopi.core.messages import IncomingMessage
from takopi.runs.buttons import ASK, INBOX, AskPress, InboxPress
from tests.app.recording import (
    CHAT,
    GROUP,
    SILENT,
    SOON_S,
    Arrived,
    Rig,
    config_with,
    message_of,
    open_rig,
)

LATE = "This was decided already."


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig, None]:
    async with open_rig(tmp_path) as rig:
        yield rig


async def stale(rig: Rig, text: str = "say: late") -> tuple[InboxId, Arrived]:
    """A message that waited too long, and the question about it."""
    message = message_of(rig.transport.next_id(), text)
    inbox_id = await rig.receive(message)
    await ask_about(rig.desk, inbox_id, message)
    (card,) = await rig.flush()
    return inbox_id, card


async def test_stale_message_runs_when_it_is_told_to(rig: Rig) -> None:
    inbox_id, card = await stale(rig)
    assert await rig.press(card, card.data("Run")) == SILENT
    (run,) = await rig.runs()

    assert run.inbox_id == inbox_id
    assert (await rig.ended(run.id)).answer == "late"
    assert rig.card(card.ref).text.text == "It was late, and runs now."
    assert rig.card(card.ref).buttons == ()


async def test_stale_message_that_is_dropped_says_so(rig: Rig) -> None:
    _, card = await stale(rig)
    assert await rig.press(card, card.data("Drop")) == SILENT

    assert rig.card(card.ref).text.text == "Dropped: this does not run."
    assert await rig.runs() == ()


@pytest.mark.parametrize("first", ["Run", "Drop"])
@pytest.mark.parametrize("second", ["Run", "Drop"])
async def test_second_press_changes_nothing_and_is_told(rig: Rig, first: str, second: str) -> None:
    _, card = await stale(rig)
    await rig.press(card, card.data(first))
    runs = len(await rig.runs())
    assert await rig.press(card, card.data(second)) == LATE

    assert len(await rig.runs()) == runs
    assert len([ref for ref, _card in rig.transport.edits if ref == card.ref]) == 1
    assert rig.transport.cleared == [card.ref]


@pytest.mark.parametrize("label", ["Run", "Drop"])
async def test_message_that_has_its_run_already_is_neither_run_nor_dropped(
    rig: Rig, label: str
) -> None:
    inbox_id, card = await stale(rig)
    message = rig.incoming[inbox_id]
    assert isinstance(message, IncomingMessage)
    # As it is when takopi died between the run and the card.
    await rig.desk.requests.from_message(message, inbox_id)

    assert await rig.press(card, card.data(label)) == LATE
    assert len(await rig.runs()) == 1


async def test_decision_counts_after_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as before:
        inbox_id, card = await stale(before)
        await before.press(card, card.data("Drop"))
    async with open_rig(tmp_path) as rig:
        rig.incoming[inbox_id] = before.incoming[inbox_id]
        assert await rig.press(card, card.data("Run")) == LATE
        assert await rig.runs() == ()


async def test_message_that_cannot_be_read_any_more_is_told_and_can_be_dropped(rig: Rig) -> None:
    inbox_id, card = await stale(rig)
    del rig.incoming[inbox_id]
    await rig.press(card, card.data("Run"))
    (said,) = await rig.flush()

    assert said.text == "this message cannot be read any more\nsend it again"
    assert await rig.press(card, card.data("Drop")) == SILENT


async def test_stale_message_that_is_refused_can_be_run_later(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with(limits=Limits(user_per_min=1))) as rig:
        await rig.start("say: hi")
        await rig.flush()
        _, card = await stale(rig)
        await rig.press(card, card.data("Run"))
        assert any("in a minute" in said.text for said in await rig.flush())

        rig.config = config_with()
        assert await rig.press(card, card.data("Run")) == SILENT
        assert len(await rig.runs()) == 2


async def test_press_from_another_chat_decides_nothing(rig: Rig) -> None:
    inbox_id, card = await stale(rig)
    foreign = MessageRef("telegram", GROUP, 4)
    answer = await rig.press(foreign, INBOX.encode(InboxPress("run", inbox_id)))

    assert answer == "This button belongs to another chat."
    assert await rig.runs() == ()
    assert await rig.press(card, card.data("Drop")) == SILENT


async def test_message_that_nobody_asked_about_cannot_be_run_by_a_button(rig: Rig) -> None:
    inbox_id = await rig.receive(message_of(9, "say: hi"))
    data = INBOX.encode(InboxPress("run", inbox_id))
    assert await rig.press(MessageRef("telegram", CHAT.chat_id, 4), data) == LATE

    assert await rig.runs() == ()


async def test_message_that_is_forgotten_is_told(rig: Rig) -> None:
    data = INBOX.encode(InboxPress("run", 77))

    assert await rig.press(MessageRef("telegram", CHAT.chat_id, 4), data) == LATE


async def next_arrived(rig: Rig) -> Arrived:
    with trio.fail_after(SOON_S):
        while True:
            changed = rig.transport.changed
            if arrived := await rig.flush():
                return arrived[0]
            await changed.wait()


async def test_asks_are_decided_by_their_buttons(rig: Rig) -> None:
    run = await rig.start("ask approval to write a.txt: hi")
    card = await next_arrived(rig)
    assert await rig.press(card, card.data("Allow once")) == SILENT
    assert await rig.press(card, card.data("Deny")) == LATE

    assert (await rig.ended(run)).state == "done"
    assert (rig.desk.shop.start_cwd / "a.txt").read_text(encoding="utf-8") == "hi\n"


async def test_ask_of_a_run_that_is_gone_is_told(rig: Rig) -> None:
    data = ASK.encode(AskPress(77, 1, 0, "allow"))

    assert await rig.press(MessageRef("telegram", CHAT.chat_id, 4), data) == LATE
