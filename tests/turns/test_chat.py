"""Sessions in a chat that moves, beside a terminal, after a cancel and with damaged rows."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from takopi.core.errors import Refused
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Outgoing
from takopi.store import outbox, reviews, upkeep
from takopi.store.database import Database, open_database
from takopi.turns import journal
from takopi.turns.actions import Bench
from takopi.turns.buttons import REVIEW
from takopi.turns.chat import ELSEWHERE, TOO_LATE, TurnChat
from takopi.turns.hold import hold
from takopi.turns.kept import Kept
from takopi.turns.layout import find_turn
from takopi.turns.machine import Choice
from takopi.turns.plan import Create, Plan
from takopi.turns.ports import Place, Ports
from takopi.turns.render import render
from takopi.turns.review import Review
from takopi.turns.service import Rules, create_session
from takopi.turns.view import planning_card
from tests.app.recording import Recorder

SOON_S = 10
ADA = 1001
OLD, NEW = Scope("telegram", -500), Scope("telegram", -100500)
GOOD = render(Plan(title="Good", rationale="Why.", actions=(Create(path="a.txt", content="a\n"),)))


@dataclass
class Chat:
    """Sessions in a chat, whose planner answers when `answers` is set and ends late."""

    root: Path
    db: Database
    transport: Recorder = field(default_factory=Recorder)
    asked: list[str] = field(default_factory=list[str])
    answers: trio.Event = field(default_factory=trio.Event)
    presses: int = 0

    def ports(self) -> Ports:
        async def is_admin(_scope: Scope, _user_id: int) -> bool:
            await trio.lowlevel.checkpoint()
            return True

        def bench(_root: Path) -> Bench:
            raise AssertionError("nothing is carried out")

        return Ports(
            db=self.db,
            transport=lambda _scope: self.transport,
            is_admin=is_admin,
            ask=self._ask,
            rules=Rules,
            bench=bench,
            environ=os.environ,
        )

    async def _ask(self, _system: str, user: str) -> str:
        self.asked.append(user.rpartition("## User Request\n\n")[2].strip())
        try:
            await self.answers.wait()
        finally:
            with trio.CancelScope(shield=True):
                # A process that is ended takes its time.
                await trio.testing.wait_all_tasks_blocked(0.05)
        return GOOD

    async def next_card(self, chat: Scope, *, label: str) -> tuple[MessageRef, str, Scope]:
        """The next message with such a button: where it arrived, its data, and the scope."""
        with trio.fail_after(SOON_S):
            while True:
                changed = self.transport.changed
                while arrived := await self.arrive(chat):
                    send, number = arrived
                    message = msgspec.msgpack.decode(send.payload, type=Outgoing)
                    buttons = [button for row in message.card.buttons for button in row]
                    found = [button.data for button in buttons if button.label == label]
                    if found:
                        ref = MessageRef(chat.transport, chat.chat_id, number)
                        return ref, found[0], send.scope
                await changed.wait()

    async def arrive(self, chat: Scope) -> tuple[outbox.Send, int] | None:
        """Let what waits longest arrive, under a number."""
        number = self.transport.next_id()

        def change(conn: sqlite3.Connection) -> outbox.Send | None:
            send = outbox.take_next(conn, chat, now_ms=2**50)
            if send is not None:
                outbox.confirm(conn, send.id, message_id=number, now_ms=1)
            return send

        send = await self.db.write(change)
        return None if send is None else (send, number)

    async def press(self, turns: TurnChat, ref: MessageRef, data: str) -> str:
        self.presses += 1
        scope = Scope(ref.transport, ref.chat_id)
        press = Press(str(self.presses), scope, ref.message_id, ADA, data)
        what = REVIEW.decode(data)
        assert what is not None
        with trio.fail_after(SOON_S):
            await turns.press(press, what)
        return self.transport.answers[press.id][-1]


@asynccontextmanager
async def open_chat(folder: Path) -> AsyncGenerator[tuple[Chat, TurnChat]]:
    root = folder / "root"
    root.mkdir(exist_ok=True)
    async with open_database(folder / "state.db") as db, trio.open_nursery() as services:
        await services.start(db.serve)
        async with trio.open_nursery() as work:
            chat = Chat(root, db)
            try:
                yield chat, TurnChat(work, chat.ports())
            finally:
                work.cancel_scope.cancel()
        services.cancel_scope.cancel()


async def test_order_right_after_a_cancel_is_planned(tmp_path: Path) -> None:
    async with open_chat(tmp_path) as (chat, turns):
        create_session(chat.root, "greet")
        await turns.plan(Place(OLD, chat.root), "One")
        ref, data, _ = await chat.next_card(OLD, label="Cancel")
        with trio.fail_after(SOON_S):
            while not chat.asked:
                await trio.testing.wait_all_tasks_blocked()
        await chat.press(turns, ref, data)
        await turns.plan(Place(OLD, chat.root), "Two")
        chat.answers.set()
        await chat.next_card(OLD, label="Approve all")
        assert chat.asked == ["One", "Two"]


async def test_turn_that_a_terminal_carries_out_is_not_called_interrupted(tmp_path: Path) -> None:
    async with open_chat(tmp_path) as (chat, turns):
        session = create_session(chat.root, "greet")
        turn = find_turn(chat.root)
        turn.path("plan.md").write_text(GOOD, encoding="utf-8")
        journal.append(turn, journal.opening(GOOD, Choice(), started=""))
        place = Place(OLD, chat.root)
        with hold(session):
            assert (await turns.status(place)).endswith("is being carried out")
            with pytest.raises(Refused, match="turn 01 is being carried out"):
                await turns.plan(place, "Hello")
        assert (await turns.status(place)).endswith("was interrupted while it was carried out")
        with pytest.raises(Refused, match="turn 01 was interrupted"):
            await turns.plan(place, "Hello")


async def test_card_goes_along_with_a_chat_that_moves(tmp_path: Path) -> None:
    async with open_chat(tmp_path) as (chat, turns):
        create_session(chat.root, "greet")
        chat.answers.set()
        await turns.plan(Place(OLD, chat.root), "Hello")
        before, data, _ = await chat.next_card(OLD, label="Quit")
        await chat.db.write(lambda conn: upkeep.move_chat(conn, OLD, new=NEW))
        await turns.follow(OLD, NEW)
        ref, data, _ = await chat.next_card(NEW, label="Quit")
        assert await chat.press(turns, before, data) == ELSEWHERE
        assert not await chat.press(turns, ref, data)
        # A number of the old chat is somebody else's message in the new one.
        touched = [*chat.transport.cleared, *chat.transport.deleted]
        assert MessageRef(NEW.transport, NEW.chat_id, before.message_id) not in touched


async def test_card_that_waits_while_its_chat_moves_is_sent_once_and_can_be_pressed(
    tmp_path: Path,
) -> None:
    async with open_chat(tmp_path) as (chat, turns):
        create_session(chat.root, "greet")
        find_turn(chat.root).path("plan.md").write_text(GOOD, encoding="utf-8")
        await turns.execute(Place(OLD, chat.root))
        await chat.db.write(lambda conn: upkeep.move_chat(conn, OLD, new=NEW))
        await turns.follow(OLD, NEW)
        ref, data, _ = await chat.next_card(NEW, label="Quit")
        assert await chat.db.read(outbox.due) == ()
        assert not await chat.press(turns, ref, data)


async def test_session_of_a_topic_that_is_gone_goes_on_in_the_chat(tmp_path: Path) -> None:
    topic = Scope(NEW.transport, NEW.chat_id, 7)
    async with open_chat(tmp_path) as (chat, turns):
        create_session(chat.root, "greet")
        find_turn(chat.root).path("plan.md").write_text(GOOD, encoding="utf-8")
        await turns.execute(Place(topic, chat.root))
        _, _, scope = await chat.next_card(NEW, label="Quit")
        assert scope == topic
        await turns.follow(topic, topic.chat)
        _, _, scope = await chat.next_card(NEW, label="Quit")
        assert scope == NEW
        assert [row.scope for row in await chat.db.read(reviews.every)] == [NEW]


async def test_chat_that_moves_while_takopi_stops_is_followed_by_the_next_start(
    tmp_path: Path,
) -> None:
    async with open_database(tmp_path / "state.db") as db, trio.open_nursery() as services:
        await services.start(db.serve)
        chat = Chat(tmp_path, db)
        create_session(chat.root, "greet")
        plan = find_turn(chat.root).path("plan.md")
        plan.write_text(GOOD, encoding="utf-8")
        async with trio.open_nursery() as work:
            turns = TurnChat(work, chat.ports())
            await turns.execute(Place(OLD, chat.root))
            await chat.next_card(OLD, label="Quit")
            work.cancel_scope.cancel()
        plan.write_text("# Nothing\n", encoding="utf-8")
        await chat.db.write(lambda conn: upkeep.move_chat(conn, OLD, new=NEW))
        await turns.follow(OLD, NEW)
        async with trio.open_nursery() as work:
            chat.answers.set()
            await TurnChat(work, chat.ports()).recover()
            await chat.next_card(NEW, label="Approve all")
            work.cancel_scope.cancel()
        services.cancel_scope.cancel()


async def test_plan_that_is_sent_to_be_read_hides_nothing(tmp_path: Path) -> None:
    async with open_chat(tmp_path) as (chat, turns):
        create_session(chat.root, "greet")
        text = GOOD.replace("Why.", "Why\u202e.")
        find_turn(chat.root).path("plan.md").write_text(text, encoding="utf-8")
        await turns.execute(Place(OLD, chat.root))
        ref, data, _ = await chat.next_card(OLD, label="Review")
        await chat.press(turns, ref, data)
        arrived = await chat.arrive(OLD)
        assert arrived is not None
        read = msgspec.msgpack.decode(arrived[0].payload, type=Outgoing).card.text.text
        assert text.replace("\u202e", "\\u202e").strip() in read


async def test_card_that_somebody_deleted_is_shown_anew(tmp_path: Path) -> None:
    async with open_chat(tmp_path) as (chat, turns):
        create_session(chat.root, "greet")
        find_turn(chat.root).path("plan.md").write_text(GOOD, encoding="utf-8")
        await turns.execute(Place(OLD, chat.root))
        lost, data, _ = await chat.next_card(OLD, label="Quit")
        await turns.lost(MessageRef(lost.transport, lost.chat_id, lost.message_id + 1))
        assert await chat.db.read(outbox.due) == ()
        await turns.lost(lost)
        ref, data, _ = await chat.next_card(OLD, label="Quit")
        assert await chat.press(turns, lost, data) == TOO_LATE
        assert not await chat.press(turns, ref, data)


async def test_turn_that_is_over_stays_so_when_a_late_step_of_it_is_written(tmp_path: Path) -> None:
    async with open_database(tmp_path / "state.db") as db, trio.open_nursery() as services:
        await services.start(db.serve)
        transport = Recorder()
        kept = Kept(db, lambda _scope: transport)
        review = Review(stage="planning", session="s", turn="01")
        at = await kept.begin(OLD, tmp_path, review, draw=planning_card)
        assert at is not None
        await kept.end(at)
        await kept.save(at, review)
        assert kept.at(tmp_path) is None
        services.cancel_scope.cancel()


async def test_step_that_is_written_while_the_chat_moves_is_kept(tmp_path: Path) -> None:
    async with open_database(tmp_path / "state.db") as db, trio.open_nursery() as services:
        await services.start(db.serve)
        transport = Recorder()
        kept = Kept(db, lambda _scope: transport)
        review = Review(stage="planning", session="s", turn="01")
        first = await kept.begin(OLD, tmp_path / "1", review, draw=planning_card)
        second = await kept.begin(OLD, tmp_path / "2", review, draw=planning_card)
        assert first is not None
        assert second is not None
        is_free = threading.Event()

        def wait(_conn: sqlite3.Connection) -> None:
            is_free.wait(SOON_S)

        async with trio.open_nursery() as nursery:
            # They are written together, and what moves the first has to wait for them.
            nursery.start_soon(db.write, wait)
            nursery.start_soon(kept.save, second, replace(review, stage="failed"))
            await trio.testing.wait_all_tasks_blocked(0.05)
            nursery.start_soon(kept.follow, OLD, NEW)
            await trio.testing.wait_all_tasks_blocked(0.05)
            is_free.set()
        stages = [(each.scope, each.review.stage) for each in kept]
        assert stages == [(NEW, "planning"), (NEW, "failed")]
        services.cancel_scope.cancel()


async def test_row_that_cannot_be_read_is_over_and_the_others_go_on(tmp_path: Path) -> None:
    async with open_chat(tmp_path) as (chat, turns):
        await chat.db.write(
            lambda conn: reviews.begin(conn, OLD, Path("/other"), state=b"\xc1 no review")
        )
        create_session(chat.root, "greet")
        find_turn(chat.root).path("plan.md").write_text(GOOD, encoding="utf-8")
        await turns.execute(Place(OLD, chat.root))
        ref, data, _ = await chat.next_card(OLD, label="Quit")
    async with open_chat(tmp_path) as (chat, turns):
        await turns.recover()
        assert [row.root for row in await chat.db.read(reviews.every)] == [chat.root]
        assert not await chat.press(turns, ref, data)
