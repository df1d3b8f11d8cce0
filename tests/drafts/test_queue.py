from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import trio

from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Card, Outgoing
from takopi.drafts.face import Faces, clear
from takopi.drafts.ports import Ports, Start
from takopi.drafts.queue import Queues
from takopi.drafts.tmux import Target, Tmux
from takopi.store import drafts as rows
from takopi.store.database import Database, open_database
from takopi.store.drafts import Draft, NewJob
from takopi.store.upkeep import move_chat

OLD, NEW = Scope("chat", -5), Scope("chat", -1005)
WITHIN_S = 60.0


class Nowhere:
    """A chat in which nobody looks."""

    name = "chat"
    bot_name = None
    max_units = 4000

    async def send(self, scope: Scope, message: Outgoing) -> MessageRef:
        raise NotImplementedError

    def edit(self, ref: MessageRef, card: Card) -> None: ...
    def clear_buttons(self, ref: MessageRef) -> None: ...
    def delete(self, ref: MessageRef) -> None: ...
    def acknowledge(self, press: Press, text: str = "", *, alert: bool = False) -> None: ...
    def wake(self, chat: Scope) -> None: ...

    async def settle(self, chat: Scope) -> None:
        del chat
        await trio.lowlevel.checkpoint()

    async def create_topic(self, chat: Scope, name: str) -> Scope:
        raise NotImplementedError


@dataclass
class Meanwhile:
    """A master during whose first answer something else is written."""

    db: Database
    change: Callable[[sqlite3.Connection], object]
    answered: list[str] = field(default_factory=list[str])

    async def merge(self, previous: str, new_input: str) -> str:
        self.answered.append(new_input)
        if len(self.answered) == 1:
            await self.db.write(self.change)
        return f"{previous} {new_input}".strip()


async def nowhere(_scope: Scope, _words: object) -> str:
    await trio.lowlevel.checkpoint()
    return ""


async def everybody(_scope: Scope, _user_id: int) -> bool:
    await trio.lowlevel.checkpoint()
    return True


async def ignore(_scope: Scope, _target: Target) -> None:
    await trio.lowlevel.checkpoint()


def put(
    conn: sqlite3.Connection, scope: Scope, message: Outgoing, *, key: str | None = None
) -> None:
    """Nobody hears it."""


@asynccontextmanager
async def queues(
    path: Path, change: Callable[[sqlite3.Connection], object]
) -> AsyncGenerator[tuple[Database, Queues], None]:
    """Queues with an input in the old chat, whose master takes a while: so `change` comes first."""
    with trio.fail_after(WITHIN_S):
        async with open_database(path) as db, trio.open_nursery() as nursery:
            await nursery.start(db.serve)
            ports = Ports(
                db=db,
                transport=lambda _scope: Nowhere(),
                put=put,
                master=Meanwhile(db, change),
                tmux=cast("Tmux", None),
                hear=cast("Callable[..., Awaitable[str]]", nowhere),
                is_admin=everybody,
                split=lambda _scope, text: ("", text),
                place=nowhere,
                start=cast("Start", None),
            )
            await db.write(lambda conn: begin(conn, OLD, "first"))
            try:
                yield db, Queues(nursery, ports, Faces(nursery, ports), on_gone=ignore)
            finally:
                nursery.cancel_scope.cancel()


def begin(conn: sqlite3.Connection, scope: Scope, said: str) -> None:
    rows.open_draft(conn, scope)
    rows.add_job(conn, scope, NewJob("text", said))


async def until_done(db: Database, queues: Queues, scope: Scope) -> Draft:
    """The draft of the scope, once nothing waits there."""
    while True:
        queues.kick(scope)
        await trio.sleep(0.01)
        draft, jobs = await db.read(lambda conn: (rows.find(conn, scope), rows.jobs(conn, scope)))
        if draft is not None and not jobs:
            return draft


async def test_answer_that_comes_after_a_reset_is_not_part_of_the_next_draft(
    tmp_path: Path,
) -> None:
    def reset_and_go_on(conn: sqlite3.Connection) -> None:
        clear(conn, OLD)
        begin(conn, OLD, "second")

    async with queues(tmp_path / "state.db", reset_and_go_on) as (db, mine):
        draft = await until_done(db, mine, OLD)
    assert draft.versions == ("second",)


async def test_input_whose_chat_moves_while_it_is_taken_in_is_taken_in_there(
    tmp_path: Path,
) -> None:
    async with queues(tmp_path / "state.db", lambda conn: move_chat(conn, OLD, new=NEW)) as (
        db,
        mine,
    ):
        mine.kick(OLD)
        draft = await until_done(db, mine, NEW)
        assert await db.read(lambda conn: rows.find(conn, OLD)) is None
    assert draft.versions == ("first",)
