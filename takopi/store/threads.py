"""Which conversation a message belongs to, for as long as anybody may reply to it."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from takopi.core.context import Context
from takopi.core.ids import EngineId, MessageRef, ResumeToken, RunId


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation inside an engine, and where it was last held."""

    token: ResumeToken
    context: Context | None
    cwd: Path | None
    used_ms: int


def remember(
    conn: sqlite3.Connection,
    token: ResumeToken,
    *,
    context: Context | None,
    cwd: Path | None,
    now_ms: int,
) -> None:
    """Keep where the thread is held now."""
    conn.execute(
        "INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (engine, value) DO UPDATE SET"
        " project = excluded.project, branch = excluded.branch, cwd = excluded.cwd,"
        " used_ms = excluded.used_ms",
        (token.engine, token.value, *context_columns(context), cwd_column(cwd), now_ms),
    )


def find(conn: sqlite3.Connection, token: ResumeToken) -> Thread | None:
    """What is known of the thread, None if it was never held here."""
    row = conn.execute(
        "SELECT * FROM threads WHERE engine = ? AND value = ?", (token.engine, token.value)
    ).fetchone()
    if row is None:
        return None
    return Thread(token, context_of(row), cwd_of(row), row["used_ms"])


def map_message(conn: sqlite3.Connection, ref: MessageRef, *, run_id: RunId) -> None:
    """Let the message belong to the run, and to its thread if it has one; the last run wins."""
    conn.execute(
        "INSERT INTO messages SELECT ?, ?, ?, id, iif(thread IS NULL, NULL, engine), thread"
        " FROM runs WHERE id = ?"
        " ON CONFLICT (transport, chat_id, message_id) DO UPDATE SET"
        " run_id = excluded.run_id, engine = excluded.engine, thread = excluded.thread",
        (ref.transport, ref.chat_id, ref.message_id, run_id),
    )


def teach_messages(conn: sqlite3.Connection, run_id: RunId, *, token: ResumeToken) -> None:
    """Let all messages of the run know the thread that it turned out to be."""
    conn.execute(
        "UPDATE messages SET engine = ?, thread = ? WHERE run_id = ?",
        (token.engine, token.value, run_id),
    )


def run_of(conn: sqlite3.Connection, ref: MessageRef) -> RunId | None:
    """The run that the message belongs to; None if it is unknown, or its run was pruned."""
    row = _message(conn, ref)
    return None if row is None or row["run_id"] is None else RunId(row["run_id"])


def thread_of(conn: sqlite3.Connection, ref: MessageRef) -> ResumeToken | None:
    """The thread that a reply to the message continues, if there is one."""
    row = _message(conn, ref)
    if row is None or row["thread"] is None:
        return None
    return ResumeToken(EngineId(row["engine"]), row["thread"])


def _message(conn: sqlite3.Connection, ref: MessageRef) -> sqlite3.Row | None:
    return conn.execute(
        "SELECT * FROM messages WHERE transport = ? AND chat_id = ? AND message_id = ?",
        (ref.transport, ref.chat_id, ref.message_id),
    ).fetchone()


def context_columns(context: Context | None) -> tuple[str | None, str | None]:
    """The columns `project, branch` of a context."""
    return (None, None) if context is None else (context.project, context.branch)


def context_of(row: sqlite3.Row) -> Context | None:
    """The context in a row's columns `project, branch`."""
    return None if row["project"] is None else Context(row["project"], row["branch"])


def cwd_column(cwd: Path | None) -> bytes | None:
    """The column `cwd`: bytes, because a folder's name need not be Unicode."""
    return None if cwd is None else os.fsencode(cwd)


def cwd_of(row: sqlite3.Row) -> Path | None:
    """The folder in a row's column `cwd`."""
    return None if row["cwd"] is None else Path(os.fsdecode(row["cwd"]))
