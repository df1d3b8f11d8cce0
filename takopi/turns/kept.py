"""Keeps what is open in the store, and puts every card where it will be sent, in one transaction.

A card has a key of its own, so it is sent once, and it is known which message it became.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import structlog
from msgspec.structs import replace

from takopi.core.ids import MessageRef, Scope
from takopi.core.outgoing import Card, Outgoing
from takopi.core.ports import Transport
from takopi.kit.clock import now_ms
from takopi.store import outbox
from takopi.store import reviews as rows
from takopi.store.database import Database
from takopi.store.reviews import ReviewId
from takopi.turns.review import Review, decode, encode
from takopi.turns.view import Face

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.turns")


@dataclass(frozen=True, slots=True)
class Open:
    """One turn that is open in a chat."""

    id: ReviewId
    scope: Scope
    root: Path
    review: Review

    @property
    def key(self) -> str:
        """Under what its card is kept in the outbox."""
        return _key(self.id, self.review)


Draw = Callable[[Face], Card]
"""Makes the card of a review."""


class Kept:
    """Everything that is open, in memory as it is in the store."""

    def __init__(self, db: Database, transport: Callable[[Scope], Transport | None]) -> None:
        self._db = db
        self._transport = transport
        self._open: dict[Path, Open] = {}

    def __iter__(self) -> Iterator[Open]:
        return iter(tuple(self._open.values()))

    async def load(self) -> None:
        """Read what an earlier process left; what cannot be read is over."""
        for row in await self._db.read(rows.every):
            try:
                review = decode(row.state)
            except msgspec.MsgspecError as error:
                log.warning("review.unreadable", root=str(row.root), why=str(error))
                await self._db.write(partial(rows.end, review_id=row.id))
            else:
                self._open[row.root] = Open(row.id, row.scope, row.root, review)

    async def follow(self, old: Scope, new: Scope) -> tuple[ReviewId, ...]:
        """What was open in a chat that moved, or in a topic that is gone, goes on in the other."""
        moved = [
            Open(each.id, _moved(each.scope, old, new), each.root, each.review)
            for each in self
            if old in {each.scope, each.scope.chat}
        ]
        # All at once: what is saved of one while another is written must not be undone.
        self._open.update((each.root, each) for each in moved)
        for each in moved:
            await self._db.write(partial(rows.move, review_id=each.id, scope=each.scope))
        return tuple(each.id for each in moved)

    def at(self, root: Path) -> Open | None:
        """What is open for a folder."""
        return self._open.get(root)

    def find(self, review_id: int) -> Open | None:
        """What is open under a number."""
        return next((each for each in self._open.values() if each.id == review_id), None)

    def waiting(self, scope: Scope, user_id: int) -> Open | None:
        """What waits for a text of this person here."""
        return next(
            (
                each
                for each in self._open.values()
                if each.review.waits is not None
                and (each.scope, each.review.user_id) == (scope, user_id)
            ),
            None,
        )

    def face(self, opened: Open) -> Face:
        """What a card of it is made of."""
        return Face(opened.id, opened.review, self._units(opened.scope))

    async def begin(
        self,
        scope: Scope,
        root: Path,
        review: Review,
        *,
        draw: Draw,
        also: Callable[[sqlite3.Connection], bool] = lambda _conn: True,
    ) -> Open | None:
        """Open a turn with its first card; what was open for the folder is over.

        Together with what `also` does, and not at all where that says no.
        """
        old, units = self._open.get(root), self._units(scope)

        def change(conn: sqlite3.Connection) -> tuple[ReviewId, int | None] | None:
            if not also(conn):
                return None
            seen = None if old is None else _close(conn, old)
            review_id = rows.begin(conn, scope, root, state=encode(review))
            card = draw(Face(review_id, review, units))
            _put(conn, scope, Outgoing(card), key=_key(review_id, review))
            return review_id, seen

        done = await self._db.write(change)
        if done is None:
            return None
        review_id, seen = done
        if old is not None and seen is not None:
            self._clear(old, seen)
        opened = self._open[root] = Open(review_id, scope, root, review)
        self._wake(scope)
        return opened

    async def save(self, opened: Open, review: Review) -> Open:
        """Keep how it stands now; its card is the caller's."""
        await self._db.write(lambda conn: rows.save(conn, opened.id, encode(review)))
        return self._change(opened, review)

    async def show(
        self, opened: Open, review: Review, *, draw: Draw, before: Sequence[Outgoing] = ()
    ) -> Open:
        """Let it go on with another card, below what else is said; the last one has no buttons.

        The card of a plan that was being made goes.
        """
        review = replace(review, card=opened.review.card + 1, step=opened.review.step + 1)
        is_notice = opened.review.stage == "planning"
        card = draw(Face(opened.id, review, self._units(opened.scope)))

        def change(conn: sqlite3.Connection) -> int | None:
            rows.save(conn, opened.id, encode(review))
            seen = _close(conn, opened)
            for number, message in enumerate(before):
                key = f"{_key(opened.id, review)}:{number}"
                _put(conn, opened.scope, message, key=key)
            message = Outgoing(card, removes=seen if is_notice else None)
            _put(conn, opened.scope, message, key=_key(opened.id, review))
            return seen

        seen = await self._db.write(change)
        if seen is not None and not is_notice:
            self._clear(opened, seen)
        changed = self._change(opened, review)
        self._wake(changed.scope)
        return changed

    async def end(self, opened: Open, *, said: Card | None = None) -> None:
        """It is over; its card has nothing left to press."""

        def change(conn: sqlite3.Connection) -> int | None:
            rows.end(conn, opened.id)
            if said is not None:
                _put(conn, opened.scope, Outgoing(said), key=f"pv:{opened.id}:end")
            return _close(conn, opened)

        seen = await self._db.write(change)
        self._open.pop(opened.root, None)
        if seen is not None:
            self._clear(opened, seen)
        self._wake(opened.scope)

    async def say(self, scope: Scope, message: Outgoing, *, key: str | None = None) -> bool:
        """Say something that is no card of it; a `key` says it once. Whether it is said now."""

        def change(conn: sqlite3.Connection) -> bool:
            if key is not None and outbox.knows(conn, key):
                return False
            _put(conn, scope, message, key=key)
            return True

        is_new = await self._db.write(change)
        self._wake(scope)
        return is_new

    async def message_id(self, opened: Open) -> int | None:
        """The message that its card became, as far as that is known."""
        return await self._db.read(lambda conn: outbox.message_of(conn, opened.key))

    async def is_card(self, opened: Open, ref: MessageRef) -> bool:
        """Whether a message is its card, or may be a copy of it of which nobody has heard."""

        def look(conn: sqlite3.Connection) -> bool:
            if (known := outbox.key_at(conn, ref)) is not None:
                return known == opened.key
            return outbox.may_be(conn, opened.key, ref)

        return await self._db.read(look)

    async def editor(self, opened: Open) -> Callable[[Card], None]:
        """What lets its card read differently; where nobody knows its message, nothing does."""
        transport, seen = self._transport(opened.scope), await self.message_id(opened)
        if transport is None or seen is None:
            return lambda _card: None
        ref = _ref(opened, seen)
        return lambda card: transport.edit(ref, card)

    async def edit(self, opened: Open, card: Card) -> None:
        """Let its card read differently."""
        (await self.editor(opened))(card)

    def _change(self, opened: Open, review: Review) -> Open:
        # While it was written its chat may have moved; or it has ended, and stays so.
        known = self.find(opened.id)
        scope = opened.scope if known is None else known.scope
        changed = Open(opened.id, scope, opened.root, review)
        if known is not None:
            self._open[opened.root] = changed
        return changed

    def _clear(self, opened: Open, message_id: int) -> None:
        if transport := self._transport(opened.scope):
            transport.clear_buttons(_ref(opened, message_id))

    def _units(self, scope: Scope) -> int:
        transport = self._transport(scope)
        assert transport is not None  # ruff: ignore[assert] only what can be shown is opened
        return transport.max_units

    def _wake(self, scope: Scope) -> None:
        if transport := self._transport(scope):
            transport.wake(scope.chat)


def _key(review_id: int, review: Review) -> str:
    return f"pv:{review_id}:{review.card}"


def _moved(scope: Scope, old: Scope, new: Scope) -> Scope:
    return new if scope == old else Scope(new.transport, new.chat_id, scope.topic_id)


def _ref(opened: Open, message_id: int) -> MessageRef:
    return MessageRef(opened.scope.transport, opened.scope.chat_id, message_id)


def _close(conn: sqlite3.Connection, opened: Open) -> int | None:
    return outbox.close_question(conn, opened.key, now_ms=now_ms())


def _put(conn: sqlite3.Connection, scope: Scope, message: Outgoing, *, key: str | None) -> None:
    payload = msgspec.msgpack.encode(message)
    outbox.add(conn, scope, kind="notice", payload=payload, now_ms=now_ms(), dedupe_key=key)
