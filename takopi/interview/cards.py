"""The cards of interviews on their way out: each is put into the outbox once, under its own key.

The key says which interview and which of its cards that is, so a press is known by the message that
it was on, and the buttons need not carry it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import structlog
import trio

from takopi.core.errors import StoreFailed
from takopi.core.ids import MessageRef, Scope
from takopi.core.outgoing import Card, Outgoing
from takopi.core.ports import Transport
from takopi.interview.host import Host
from takopi.interview.session import Session
from takopi.interview.view import closed_card
from takopi.kit.clock import now_ms
from takopi.kit.supervise import Backoff
from takopi.store import outbox
from takopi.store.database import Database

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.interview")


@dataclass(frozen=True, slots=True)
class Shown:
    """Which card of which interview a message is."""

    session_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Cards:
    """Says what interviews have to say."""

    db: Database
    host: Host

    def transport(self, session: Session) -> Transport:
        """Where the person is; only interviews that have such a place are open."""
        transport = self.host.transport(session.scope)
        assert transport is not None  # ruff: ignore[assert] see above
        return transport

    async def find(self, ref: MessageRef, sessions: tuple[Session, ...]) -> Shown | None:
        """What a message shows, also while takopi has not heard yet that it arrived."""
        here = [
            session
            for session in sessions
            if (session.transport, session.chat_id) == (ref.transport, ref.chat_id)
        ]

        def look(conn: sqlite3.Connection) -> str | None:
            if (key := outbox.key_at(conn, ref)) is not None:
                return key
            keys = [each.card_key for each in here if outbox.may_be(conn, each.card_key, ref)]
            # Where it could be the card of two people, it is nobody's.
            return keys[0] if len(keys) == 1 else None

        return _read_key(await self.db.read(look) or "")

    async def show(self, session: Session, card: Card, *, old: Session | None, closed: str) -> None:
        """Let the card be sent, and the one before it be over: it says what was answered."""

        def change(conn: sqlite3.Connection) -> int | None:
            seen = None if old is None else _close(conn, old)
            removes = seen if old is not None and old.shown == "checking" else None
            _put(conn, session.scope, Outgoing(card, removes=removes), key=session.card_key)
            return seen

        seen = await self._write(change)
        self.transport(session).wake(session.scope.chat)
        if seen is not None and old is not None and old.shown != "checking":
            self._leave(old, seen, closed)

    async def close(self, session: Session) -> None:
        """Leave nothing to press on the card of this session."""
        seen = await self._write(lambda conn: _close(conn, session))
        if seen is not None:
            self._leave(session, seen, "")

    async def end(self, session: Session, card: Card) -> None:
        """Say the last word."""

        def change(conn: sqlite3.Connection) -> int | None:
            seen = _close(conn, session)
            _put(conn, session.scope, Outgoing(card), key=session.end_key)
            return seen

        seen = await self._write(change)
        self.transport(session).wake(session.scope.chat)
        if seen is not None:
            self._leave(session, seen, "")

    async def say(
        self, scope: Scope, card: Card, *, reply_to: int | None = None, key: str | None = None
    ) -> None:
        """Say something that is no card of an interview."""
        message = Outgoing(card, reply_to=reply_to)
        await self._write(lambda conn: _put(conn, scope, message, key=key))
        if transport := self.host.transport(scope):
            transport.wake(scope.chat)

    async def _write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """What is said follows from what was kept: it is written as soon as the disk takes it."""
        backoff = Backoff(cap_s=5.0)
        while True:
            try:
                return await self.db.write(change)
            except StoreFailed as error:
                log.warning("interview.not_shown", why=error.what)
            await trio.sleep(backoff.pause_s())

    def _leave(self, session: Session, message_id: int, closed: str) -> None:
        transport = self.transport(session)
        ref = MessageRef(session.transport, session.chat_id, message_id)
        if closed:
            transport.edit(ref, closed_card(closed))
        else:
            transport.clear_buttons(ref)


def _close(conn: sqlite3.Connection, session: Session) -> int | None:
    return outbox.close_question(conn, session.card_key, now_ms=now_ms())


def _read_key(key: str) -> Shown | None:
    prefix, _, rest = key.removeprefix("closed:").partition(":")
    session_id, _, revision = rest.partition(":")
    if prefix != "iq" or not revision.isdecimal():
        return None
    return Shown(session_id, int(revision))


def _put(conn: sqlite3.Connection, scope: Scope, message: Outgoing, *, key: str | None) -> None:
    payload = msgspec.msgpack.encode(message)
    outbox.add(conn, scope, kind="notice", payload=payload, now_ms=now_ms(), dedupe_key=key)
