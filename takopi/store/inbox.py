"""Every update is kept before it is confirmed, and handled at most once.

`new → taken → done | refused | reported`. What was taken and not settled when the process died is
reported and never handled again. A part of another update is done as soon as it is joined to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from takopi.core.errors import Refused
from takopi.core.ids import InboxId

InboxState = Literal["new", "taken", "done", "refused", "reported"]
Settlement = Literal["done", "refused", "reported"]


@dataclass(frozen=True, slots=True)
class Update:
    """An update as a transport hands it over; `update_id` is the transport's own number."""

    update_id: int
    chat_id: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Received:
    """An update in the inbox. `source` names the bot, so that another bot's numbers never clash."""

    id: InboxId
    source: str
    update_id: int
    chat_id: int
    received_ms: int
    payload: bytes
    state: InboxState


def record(
    conn: sqlite3.Connection,
    source: str,
    *,
    updates: Iterable[Update],
    next_offset: int | None,
    now_ms: int,
) -> tuple[Received, ...]:
    """Keep the updates, and where to go on from; returns those that were not here before.

    `next_offset` is None for a source that has no such thing.
    """
    fresh: list[Received] = []
    for update in updates:
        row = conn.execute(
            "INSERT INTO inbox (source, update_id, chat_id, received_ms, payload)"
            " VALUES (?, ?, ?, ?, ?) ON CONFLICT (source, update_id) DO NOTHING RETURNING *",
            (source, update.update_id, update.chat_id, now_ms, update.payload),
        ).fetchone()
        if row is not None:
            fresh.append(_received(row))
    if next_offset is not None:
        conn.execute(
            "INSERT INTO offsets VALUES (?, ?)"
            " ON CONFLICT (source) DO UPDATE SET next_offset = excluded.next_offset",
            (source, next_offset),
        )
    return tuple(fresh)


def offset(conn: sqlite3.Connection, source: str) -> int | None:
    """Where the source goes on from, None if nothing was ever recorded."""
    row = conn.execute("SELECT next_offset FROM offsets WHERE source = ?", (source,)).fetchone()
    return None if row is None else row["next_offset"]


def find(conn: sqlite3.Connection, inbox_id: InboxId) -> Received | None:
    """The update, or None if it was never here or is long gone."""
    row = conn.execute("SELECT * FROM inbox WHERE id = ?", (inbox_id,)).fetchone()
    return None if row is None else _received(row)


def pending(conn: sqlite3.Connection) -> tuple[Received, ...]:
    """What nobody has taken yet, in the order it came."""
    return _in_state(conn, "new")


def unfinished(conn: sqlite3.Connection) -> tuple[Received, ...]:
    """What was taken and not settled: after a crash, to be reported and never handled again."""
    return _in_state(conn, "taken")


def take(conn: sqlite3.Connection, inbox_id: InboxId) -> bool:
    """Make the update the caller's own; False if somebody had it already."""
    taken = conn.execute(
        "UPDATE inbox SET state = 'taken' WHERE id = ? AND state = 'new'", (inbox_id,)
    )
    return taken.rowcount == 1


def join(
    conn: sqlite3.Connection, inbox_id: InboxId, parts: Iterable[InboxId], *, now_ms: int
) -> bool:
    """Let the update stand for its parts too: they are done, and come with it from now on.

    False if it was taken before: then they are left as they are.
    """
    whole = find(conn, inbox_id)
    if whole is None or whole.state != "new":
        return False
    conn.executemany(
        "UPDATE inbox SET state = 'done', settled_ms = ?, part_of = ?"
        " WHERE id = ? AND state = 'new' AND id != ?",
        [(now_ms, inbox_id, part, inbox_id) for part in parts],
    )
    return True


def parts_of(conn: sqlite3.Connection, inbox_id: InboxId) -> tuple[Received, ...]:
    """The updates that were joined to this one, in the order they came."""
    rows = conn.execute("SELECT * FROM inbox WHERE part_of = ? ORDER BY id", (inbox_id,))
    return tuple(_received(row) for row in rows)


def behind(conn: sqlite3.Connection, received: Received) -> tuple[Received, ...]:
    """What came into the same chat after this update, in the order it came."""
    rows = conn.execute(
        "SELECT * FROM inbox WHERE id > ? AND source = ? AND chat_id = ? ORDER BY id",
        (received.id, received.source, received.chat_id),
    )
    return tuple(_received(row) for row in rows)


def settle(
    conn: sqlite3.Connection, inbox_id: InboxId, outcome: Settlement, *, now_ms: int
) -> None:
    """Say what became of an update that was taken."""
    settled = conn.execute(
        "UPDATE inbox SET state = ?, settled_ms = ? WHERE id = ? AND state = 'taken'",
        (outcome, now_ms, inbox_id),
    )
    if settled.rowcount == 0:
        known = find(conn, inbox_id)
        state = "not known" if known is None else known.state
        raise Refused(
            f"message {inbox_id} is {state} and cannot become {outcome}",
            way_out="send it again",
        )


def _in_state(conn: sqlite3.Connection, state: InboxState) -> tuple[Received, ...]:
    # The first condition is the partial index's own, so that it is used.
    rows = conn.execute(
        "SELECT * FROM inbox WHERE state IN ('new', 'taken') AND state = ? ORDER BY id", (state,)
    )
    return tuple(_received(row) for row in rows)


def _received(row: sqlite3.Row) -> Received:
    return Received(
        id=InboxId(row["id"]),
        source=row["source"],
        update_id=row["update_id"],
        chat_id=row["chat_id"],
        received_ms=row["received_ms"],
        payload=row["payload"],
        state=row["state"],
    )
