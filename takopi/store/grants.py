"""What an engine may do in a thread without asking again, because a person said so once."""

from __future__ import annotations

import sqlite3

from takopi.core.ids import ResumeToken


def add(conn: sqlite3.Connection, thread: ResumeToken, what: str) -> None:
    """Remember the permission for as long as the thread is."""
    conn.execute(
        "INSERT INTO grants VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (thread.engine, thread.value, what),
    )


def has(conn: sqlite3.Connection, thread: ResumeToken, what: str) -> bool:
    """Whether exactly this was permitted in exactly this thread."""
    row = conn.execute(
        "SELECT 1 FROM grants WHERE engine = ? AND thread = ? AND what = ?",
        (thread.engine, thread.value, what),
    ).fetchone()
    return row is not None
