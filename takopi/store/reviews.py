"""What people are about to decide of plans: one at most for each folder that is worked in.

What is known of one is opaque here. A row is removed when it is over, and its id is never given
again: it stands on buttons.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import NewType

from takopi.core.ids import Scope

ReviewId = NewType("ReviewId", int)
"""A plan from its order to its report."""


@dataclass(frozen=True, slots=True)
class Row:
    """One plan: where people talk about it, where it is carried out, and how it stands."""

    id: ReviewId
    scope: Scope
    root: Path
    state: bytes


def begin(conn: sqlite3.Connection, scope: Scope, root: Path, *, state: bytes) -> ReviewId:
    """Keep a new one; what was there for this folder is over."""
    conn.execute("DELETE FROM reviews WHERE root = ?", (os.fsencode(root),))
    row = conn.execute(
        "INSERT INTO reviews (transport, chat_id, topic_id, root, state) VALUES (?, ?, ?, ?, ?)"
        " RETURNING id",
        (scope.transport, scope.chat_id, scope.topic_id, os.fsencode(root), state),
    ).fetchone()
    return ReviewId(row["id"])


def save(conn: sqlite3.Connection, review_id: ReviewId, state: bytes) -> None:
    """Keep how it stands now."""
    conn.execute("UPDATE reviews SET state = ? WHERE id = ?", (state, review_id))


def move(conn: sqlite3.Connection, review_id: ReviewId, scope: Scope) -> None:
    """It goes on elsewhere."""
    conn.execute(
        "UPDATE reviews SET transport = ?, chat_id = ?, topic_id = ? WHERE id = ?",
        (scope.transport, scope.chat_id, scope.topic_id, review_id),
    )


def end(conn: sqlite3.Connection, review_id: ReviewId) -> None:
    """It is over."""
    conn.execute("DELETE FROM reviews WHERE id = ?", (review_id,))


def are_any(conn: sqlite3.Connection) -> bool:
    """Whether there is one."""
    return conn.execute("SELECT 1 FROM reviews LIMIT 1").fetchone() is not None


def every(conn: sqlite3.Connection) -> tuple[Row, ...]:
    """All of them, the oldest first."""
    rows = conn.execute("SELECT * FROM reviews ORDER BY id")
    return tuple(
        Row(
            ReviewId(row["id"]),
            Scope(row["transport"], row["chat_id"], row["topic_id"]),
            Path(os.fsdecode(row["root"])),
            row["state"],
        )
        for row in rows
    )


def move_chat(conn: sqlite3.Connection, old: Scope, new: Scope) -> None:
    """A chat has a new number: what is open in it goes along."""
    conn.execute(
        "UPDATE reviews SET chat_id = ? WHERE transport = ? AND chat_id = ?",
        (new.chat_id, old.transport, old.chat_id),
    )
