"""The progress message of a run: one, silent, up to date, and gone when the run is."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from takopi.core.errors import Unreachable
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Card, Outgoing, Text
from takopi.runs.edits import CLOSE_S, EDIT_S, TICK_S, Face

CHAT = Scope("telegram", 1)
REF = MessageRef("telegram", 1, 50)


class Chat:
    """A transport that remembers what it was told, and sends when it is let."""

    name = "telegram"
    bot_name = "bot"
    max_units = 4096

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.edits: list[str] = []
        self.deleted: list[MessageRef] = []
        self.open = trio.Event()
        self.begun = False
        self.fault: Unreachable | None = None

    async def send(self, scope: Scope, message: Outgoing) -> MessageRef:
        assert scope == CHAT
        self.sent.append(message)
        with trio.CancelScope(shield=self.begun):
            await self.open.wait()
        if self.fault is not None:
            raise self.fault
        return REF

    def edit(self, ref: MessageRef, card: Card) -> None:
        assert ref == REF
        self.edits.append(card.text.text)

    def delete(self, ref: MessageRef) -> None:
        self.deleted.append(ref)

    def clear_buttons(self, ref: MessageRef) -> None:
        raise NotImplementedError

    def acknowledge(self, press: Press, text: str = "", *, alert: bool = False) -> None:
        raise NotImplementedError

    def wake(self, chat: Scope) -> None:
        raise NotImplementedError

    async def settle(self, chat: Scope) -> None:
        raise NotImplementedError

    async def create_topic(self, chat: Scope, name: str) -> Scope:
        raise NotImplementedError


class Story:
    """What the card reads, and the face that shows it."""

    def __init__(self, chat: Chat, *, ref: MessageRef | None = None) -> None:
        self.text = "working"
        self.shown: list[MessageRef] = []
        self.face = Face(
            chat, CHAT, reply_to=7, ref=ref, render=self.render, on_shown=self.remember
        )

    def render(self) -> Card:
        return Card(Text(self.text))

    async def remember(self, ref: MessageRef) -> None:
        await trio.lowlevel.checkpoint()
        self.shown.append(ref)

    def turn(self, text: str) -> None:
        self.text = text
        self.face.touch()


@pytest.fixture
def chat() -> Chat:
    chat = Chat()
    chat.open.set()
    return chat


async def test_first_card_is_a_silent_reply_and_is_remembered(
    chat: Chat, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    story = Story(chat)
    nursery.start_soon(story.face.show)
    await wait_all_tasks_blocked()
    (message,) = chat.sent
    assert (message.reply_to, message.silent) == (7, True)
    assert story.shown == [REF]
    assert await story.face.close() == REF
    assert chat.deleted == []


async def test_many_changes_are_few_edits_and_the_last_one_counts(
    chat: Chat, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    story = Story(chat)
    nursery.start_soon(story.face.show)
    for number in range(100):
        story.turn(f"step {number}")
        await trio.sleep(EDIT_S / 25)
    await trio.sleep(2 * EDIT_S)
    assert len(chat.edits) <= 100 / 25 + 2
    assert chat.edits[-1] == "step 99"
    await story.face.close()


async def test_same_text_is_not_sent_twice_and_the_clock_moves_on_by_itself(
    chat: Chat, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    story = Story(chat)
    nursery.start_soon(story.face.show)
    await trio.sleep(1)
    story.face.touch()
    await trio.sleep(1)
    assert chat.edits == []
    story.text = "working · 12s"
    await trio.sleep(TICK_S + 1)
    assert chat.edits == ["working · 12s"]
    await story.face.close()


async def test_nothing_is_edited_after_the_end(
    chat: Chat, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    story = Story(chat)
    nursery.start_soon(story.face.show)
    await trio.sleep(1)
    story.turn("late")
    await story.face.close()
    await trio.sleep(2 * TICK_S)
    assert chat.edits == []


async def test_card_that_was_not_sent_yet_is_not_sent_any_more(
    chat: Chat, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    chat.open = trio.Event()
    story = Story(chat)
    nursery.start_soon(story.face.show)
    await wait_all_tasks_blocked()
    assert await story.face.close() is None
    chat.open.set()
    await wait_all_tasks_blocked()
    assert (story.shown, chat.deleted) == ([], [])


async def test_card_that_arrives_after_the_end_is_removed(
    chat: Chat, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    chat.open, chat.begun = trio.Event(), True
    story = Story(chat)
    nursery.start_soon(story.face.show)
    await wait_all_tasks_blocked()
    began = trio.current_time()
    assert await story.face.close() is None
    assert trio.current_time() - began == pytest.approx(CLOSE_S)
    chat.open.set()
    await wait_all_tasks_blocked()
    assert chat.deleted == [REF]


async def test_card_that_cannot_be_sent_does_not_end_the_run(
    chat: Chat, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    chat.fault = Unreachable("down", maybe_applied=False)
    story = Story(chat)
    nursery.start_soon(story.face.show)
    await wait_all_tasks_blocked()
    story.turn("more")
    assert await story.face.close() is None
    assert chat.edits == []


async def test_card_of_an_earlier_process_is_edited_and_not_sent_again(
    chat: Chat, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    story = Story(chat, ref=REF)
    nursery.start_soon(story.face.show)
    await wait_all_tasks_blocked()
    assert chat.sent == []
    assert chat.edits == ["working"]
    await story.face.close()
