"""What goes through all tables at once: old rows leave, and a chat that moved is followed.

What was not finished stays, and so does the way from a message to its thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from takopi.core.ids import Scope
from takopi.store import drafts, outbox, reviews

_DAY_MS = 24 * 3600 * 1000

# Telegram hands an unconfirmed update over again for a day: its row must still be here to know it.
_INBOX_MIN_DAYS = 2


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows were removed."""

    inbox: int
    runs: int
    outbox: int


def prune(conn: sqlite3.Connection, *, keep_days: int, now_ms: int) -> Pruned:
    """Remove what was finished more than `keep_days` ago."""
    before_ms = now_ms - keep_days * _DAY_MS
    gone_inbox = conn.execute(
        "DELETE FROM inbox WHERE state IN ('done', 'refused', 'reported')"
        " AND settled_ms < ? AND received_ms < ?",
        (before_ms, now_ms - _INBOX_MIN_DAYS * _DAY_MS),
    ).rowcount
    gone_outbox = conn.execute(
        "DELETE FROM outbox WHERE state IN ('sent', 'failed') AND ended_ms < ?", (before_ms,)
    ).rowcount
    # A run whose answer has not arrived yet is not over for the person who asked.
    gone_runs = conn.execute(
        "DELETE FROM runs WHERE state NOT IN ('queued', 'running') AND ended_ms < ?"
        " AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.run_id = runs.id"
        " AND outbox.state IN ('waiting', 'sending', 'parked'))",
        (before_ms,),
    ).rowcount
    conn.execute("DELETE FROM messages WHERE run_id IS NULL AND thread IS NULL")
    conn.execute("DELETE FROM web_messages WHERE sent_ms < ?", (before_ms,))
    conn.execute("DELETE FROM web_uploads WHERE sent_ms < ?", (before_ms,))
    return Pruned(gone_inbox, gone_runs, gone_outbox)


def move_chat(
    conn: sqlite3.Connection,
    old: Scope,
    *,
    new: Scope,
    readdress: Callable[[bytes], bytes] | None = None,
) -> None:
    """A chat has a new number: what waits for it, runs in it or was chosen for it goes along.

    The messages keep their old chat, because their numbers mean nothing in the new one. Where a
    waiting payload holds such numbers, `readdress` takes them out.
    """
    there = (new.chat_id, old.transport, old.chat_id)
    if readdress is not None:
        waiting = conn.execute(
            "SELECT id, payload FROM outbox WHERE transport = ? AND chat_id = ?"
            " AND state IN ('waiting', 'sending', 'parked')",
            (old.transport, old.chat_id),
        ).fetchall()
        conn.executemany(
            "UPDATE outbox SET payload = ? WHERE id = ?",
            [(readdress(row["payload"]), row["id"]) for row in waiting],
        )
    conn.execute(
        "UPDATE outbox SET chat_id = ? WHERE transport = ? AND chat_id = ?"
        " AND state IN ('waiting', 'sending', 'parked')",
        there,
    )
    outbox.unpark(conn, new.chat)
    conn.execute(
        "UPDATE runs SET chat_id = ?, prompt_message_id = NULL, progress_message_id = NULL"
        " WHERE transport = ? AND chat_id = ? AND state IN ('queued', 'running')",
        there,
    )
    drafts.move_chat(conn, old, new)
    reviews.move_chat(conn, old, new)
    # What was chosen in the new chat already is newer than what comes from the old one.
    conn.execute(
        "DELETE FROM scopes AS own WHERE transport = ? AND chat_id = ? AND EXISTS"
        " (SELECT 1 FROM scopes AS other WHERE other.transport = own.transport"
        " AND other.chat_id = ? AND other.topic_id IS own.topic_id)",
        (old.transport, old.chat_id, new.chat_id),
    )
    conn.execute("UPDATE scopes SET chat_id = ? WHERE transport = ? AND chat_id = ?", there)
