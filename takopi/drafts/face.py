"""The one card of each draft: sent once, edited in place, and sent anew where it was deleted.

It goes out through the store's outbox, so that the store knows which message it became as soon as
anybody does, and gets its buttons after that: nothing can be pressed but on the card in the store.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TypeVar

import structlog
import trio

from takopi.core.errors import Refused, TakopiError
from takopi.core.ids import MessageRef, Scope
from takopi.core.outgoing import Card, Outgoing
from takopi.drafts.machine import State
from takopi.drafts.ports import Ports
from takopi.drafts.tmux import read_target
from takopi.drafts.view import RESET, draft_card
from takopi.kit.clock import now_ms
from takopi.kit.supervise import Backoff
from takopi.present.cards import notice
from takopi.store import drafts as rows
from takopi.store import outbox, scopes
from takopi.store.drafts import Draft, DraftId

KNOWN = 1000
"""So many drafts that are over, and cards that were deleted, are remembered."""

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.drafts")


@dataclass(slots=True)
class _Shown:
    dirty: bool = True


class Faces:
    """Shows the drafts as they are in the store. Its tasks live in `nursery`."""

    def __init__(self, nursery: trio.Nursery, ports: Ports) -> None:
        self._nursery = nursery
        self._ports = ports
        self._showing: dict[Scope, _Shown] = {}
        self._over: dict[DraftId, None] = {}
        self._deleted: dict[MessageRef, None] = {}

    def touch(self, scope: Scope) -> None:
        """Something has changed in the scope."""
        if self._nursery.cancel_scope.cancel_called:
            # takopi is stopping: it is shown after the next start.
            return
        shown = self._showing.get(scope)
        if shown is not None:
            shown.dirty = True
            return
        self._showing[scope] = _Shown()
        self._nursery.start_soon(self._show, scope, self._showing[scope])

    def delete(self, draft: Draft) -> None:
        """The draft is over, and its card goes."""
        self._end(draft)
        if (ref := card_ref(draft)) is not None:
            _remember(self._deleted, ref)
            self._ports.transport(draft.scope).delete(ref)

    def leave(self, draft: Draft, card: Card | None = None) -> None:
        """The draft is over, and its card stays, with nothing to press."""
        self._end(draft)
        if (ref := card_ref(draft)) is None:
            return
        if card is None:
            self._ports.transport(draft.scope).clear_buttons(ref)
        else:
            self._ports.transport(draft.scope).edit(ref, card)

    async def arrived(self, ref: MessageRef) -> None:
        """A card has become this message; one that came too late goes again."""
        scope = await self._ports.db.read(lambda conn: rows.scope_of_card(conn, ref))
        if scope is not None:
            self.touch(scope)
        else:
            self._ports.transport(Scope(ref.transport, ref.chat_id)).delete(ref)

    async def lost(self, ref: MessageRef) -> None:
        """Somebody has deleted a message: where it was a card, there will be another."""

        def change(conn: sqlite3.Connection) -> Scope | None:
            scope = rows.scope_of_card(conn, ref)
            draft = None if scope is None else rows.find(conn, scope)
            if draft is not None:
                rows.lose_card(conn, draft.id)
            return scope

        scope = await self._ports.db.write(change)
        if scope is not None:
            self.touch(scope)

    def not_deleted(self, ref: MessageRef) -> None:
        """A message could not be removed: where it was a card, nothing is left in it."""
        if ref in self._deleted:
            scope = Scope(ref.transport, ref.chat_id)
            self._ports.transport(scope).edit(ref, notice(RESET))

    def _end(self, draft: Draft) -> None:
        _remember(self._over, draft.id)

    async def _show(self, scope: Scope, shown: _Shown) -> None:
        backoff = Backoff()
        try:
            while shown.dirty:
                shown.dirty = False
                try:
                    await self._show_once(scope)
                except TakopiError as error:
                    log.info("draft.not_shown", why=error.what)
                    await trio.sleep(backoff.pause_s())
                    shown.dirty = True
                except Exception:  # a card must not end the runs
                    log.exception("draft.not_shown")
        finally:
            del self._showing[scope]

    async def _show_once(self, scope: Scope) -> None:
        ports = self._ports
        state, target = await ports.db.read(lambda conn: _look(conn, scope))
        if state is None:
            return
        draft, transport = state.draft, ports.transport(scope)
        place = target or await self._place(draft)
        card = draft_card(state, place=place, max_units=transport.max_units)
        if draft.id in self._over:
            # It ended while this was put together, and its card reads otherwise by now.
            return
        if (ref := card_ref(draft)) is not None:
            transport.edit(ref, card)
            return
        bare = Outgoing(Card(card.text))
        if await ports.db.write(lambda conn: self._put(conn, draft, bare)):
            transport.wake(scope.chat)

    def _put(self, conn: sqlite3.Connection, draft: Draft, message: Outgoing) -> bool:
        now = rows.find(conn, draft.scope)
        if now is None or now.id != draft.id or now.card_id is not None:
            return False
        if outbox.is_open(conn, now.card_key):
            # It is on its way: once it has arrived, it is shown what has changed since.
            return False
        self._ports.put(conn, draft.scope, message, key=rows.next_card(conn, draft.id))
        return True

    async def _place(self, draft: Draft) -> str:
        try:
            return await self._ports.place(draft.scope, draft.words or "")
        except Refused:
            # Whoever presses Run is told.
            return ""


def card_ref(draft: Draft) -> MessageRef | None:
    """The message that shows the draft, if it is known."""
    if draft.card_id is None:
        return None
    return MessageRef(draft.scope.transport, draft.scope.chat_id, draft.card_id)


def end(conn: sqlite3.Connection, draft: Draft) -> Draft:
    """The draft is over; returns it as it was last, with the card that it had."""
    scope = rows.scope_of(conn, draft.id)
    last = (None if scope is None else rows.find(conn, scope)) or draft
    rows.end(conn, draft.id)
    outbox.close_question(conn, last.card_key, now_ms=now_ms())
    return last


def clear(conn: sqlite3.Connection, scope: Scope) -> Draft | None:
    """Nothing is left of the draft of the scope and of what waits there; returns what it was."""
    draft = rows.clear(conn, scope)
    if draft is not None:
        outbox.close_question(conn, draft.card_key, now_ms=now_ms())
    return draft


def _look(conn: sqlite3.Connection, scope: Scope) -> tuple[State | None, str]:
    draft = rows.find(conn, scope)
    if draft is None:
        return None, ""
    target = read_target(scopes.get(conn, scope).target)
    return State(draft, rows.jobs(conn, scope)), f"tmux: {target.label}" if target else ""


def _remember(known: dict[T, None], what: T) -> None:
    known[what] = None
    while len(known) > KNOWN:
        del known[next(iter(known))]
