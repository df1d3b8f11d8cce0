"""What a chat has split is handled as one: long pastes and albums wait for their other parts.

Nothing else ever waits. The parts are in the inbox like everything, so a process that ends while
they are waited for loses none of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import trio

from takopi.app.desk import Desk
from takopi.core.ids import Scope
from takopi.core.messages import Arrival, Edited, Incoming, IncomingMessage
from takopi.kit.clock import now_ms
from takopi.routing.gather import belongs, is_whole, join, may_go_on
from takopi.store import inbox, ledger, threads
from takopi.store.inbox import Received

_Key: TypeAlias = tuple[Scope, int | None]


@dataclass(slots=True, eq=False)
class _Group:
    first: Arrival
    message: IncomingMessage
    last: IncomingMessage
    parts: list[Arrival] = field(default_factory=list[Arrival])
    waiting: trio.CancelScope = field(default_factory=trio.CancelScope)

    def has(self, arrival: Arrival) -> bool:
        return any(arrival.inbox_id == part.inbox_id for part in (self.first, *self.parts))


class Gathering:
    """Passes on what comes in, in its order for each sender in each scope.

    `stands_alone` says of a message that it is never the part of another.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        *,
        gather_s: Callable[[], float],
        stands_alone: Callable[[IncomingMessage], bool],
        pass_on: Callable[[Arrival], object],
    ) -> None:
        self._nursery = nursery
        self._gather_s = gather_s
        self._stands_alone = stands_alone
        self._pass_on = pass_on
        self._open: dict[_Key, _Group] = {}

    def put(self, arrival: Arrival) -> None:
        """Pass the arrival on, at once unless more of it may follow."""
        what = arrival.what
        message = what.message if isinstance(what, Edited) else what
        if not isinstance(message, IncomingMessage):
            self._pass_on(arrival)
            return
        key = (message.scope, message.sender_id)
        group = self._open.get(key)
        if group is not None and group.has(arrival):
            return
        if group is not None and self._goes_on(group, what):
            group.parts.append(arrival)
            group.last = message
            group.waiting.deadline = trio.current_time() + self._gather_s()
            if is_whole(message, len(group.parts) + 1):
                self._close(key, group)
            return
        if group is not None:
            # It must not be overtaken by what was sent after it.
            self._close(key, group)
        if isinstance(what, IncomingMessage) and self._gather_s() > 0 and may_go_on(what):
            group = self._open[key] = _Group(arrival, what, last=what)
            group.waiting.deadline = trio.current_time() + self._gather_s()
            self._nursery.start_soon(self._wait, key, group)
            return
        self._pass_on(arrival)

    def _goes_on(self, group: _Group, what: Incoming) -> bool:
        if not isinstance(what, IncomingMessage):
            return False
        if not belongs(group.message, what, last=group.last):
            return False
        return what.album is not None or not self._stands_alone(what)

    async def _wait(self, key: _Key, group: _Group) -> None:
        with group.waiting:
            await trio.sleep_forever()
        if self._open.get(key) is group:
            self._close(key, group)

    def _close(self, key: _Key, group: _Group) -> None:
        del self._open[key]
        group.waiting.cancel()
        self._pass_on(replace(group.first, parts=tuple(group.parts)))


async def make_whole(desk: Desk, arrival: Arrival, message: IncomingMessage) -> Arrival | None:
    """The arrival with everything that belongs to it in its message, and kept so in the store.

    None if it was handled before: then its parts, if there are any, are on their own.
    """
    if not arrival.parts and not may_go_on(message):
        return arrival
    parts = {part.inbox_id: part.what for part in arrival.parts}

    def change(conn: sqlite3.Connection) -> tuple[Received, ...] | None:
        if not inbox.join(conn, arrival.inbox_id, parts, now_ms=now_ms()):
            return None
        return inbox.parts_of(conn, arrival.inbox_id)

    rows = await desk.shop.db.write(change)
    if rows is None:
        return None
    # A part that was joined before a restart is known to the store alone.
    found = [parts.get(row.id) or desk.reread(row) for row in rows]
    rest = [part for part in found if isinstance(part, IncomingMessage)]
    return Arrival(arrival.inbox_id, join(message, rest))


async def reread_whole(desk: Desk, received: Received) -> IncomingMessage | None:
    """What a message of the inbox says, with all that belongs to it; None if it cannot be read."""
    first = desk.reread(received)
    rows = await desk.shop.db.read(lambda conn: inbox.parts_of(conn, received.id))
    rest = [part for row in rows if isinstance(part := desk.reread(row), IncomingMessage)]
    return join(first, rest) if isinstance(first, IncomingMessage) else None


async def reword_whole(desk: Desk, edited: IncomingMessage) -> IncomingMessage:
    """How the message reads that an edited one is a part of; itself, if it is of none."""
    rows, later = await desk.shop.db.read(lambda conn: _rows_of(conn, edited))
    if len(rows) < 2:
        return edited
    parts = [part for row in rows if isinstance(part := desk.reread(row), IncomingMessage)]
    others = [other.message for row in later if isinstance(other := desk.reread(row), Edited)]
    newest = {message.ref: message for message in (*others, edited)}
    now = [newest.get(part.ref, part) for part in parts]
    return join(now[0], now[1:]) if now else edited


def _rows_of(
    conn: sqlite3.Connection, message: IncomingMessage
) -> tuple[tuple[Received, ...], tuple[Received, ...]]:
    """The updates that the run of this message began with, and what came after the first."""
    run_id = threads.run_of(conn, message.ref)
    run = None if run_id is None else ledger.find(conn, run_id)
    first = None if run is None or run.inbox_id is None else inbox.find(conn, run.inbox_id)
    parts = () if first is None else inbox.parts_of(conn, first.id)
    if first is None or not parts:
        return (), ()
    return (first, *parts), inbox.behind(conn, first)
