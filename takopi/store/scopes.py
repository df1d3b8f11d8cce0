"""What people chose for a chat or a topic stays chosen until they choose again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal

from takopi.core.context import Context
from takopi.core.ids import EngineId, ResumeToken, Scope
from takopi.store.threads import context_columns, context_of

TriggerMode = Literal["all", "mention"]


@dataclass(frozen=True, slots=True)
class Choices:
    """What was chosen for a scope; None where nothing was.

    `target` names where prompts go instead of an engine; `thread` is the scope's current one. With
    `drafting`, messages are put together before they are sent.
    """

    context: Context | None = None
    engine: EngineId | None = None
    model: str | None = None
    target: str | None = None
    trigger_mode: TriggerMode | None = None
    thread: ResumeToken | None = None
    drafting: bool = False


def get(conn: sqlite3.Connection, scope: Scope) -> Choices:
    """The scope's own choices; what a topic inherits from its chat is the caller's affair."""
    row = conn.execute(
        "SELECT * FROM scopes WHERE transport = ? AND chat_id = ? AND topic_id IS ?",
        (scope.transport, scope.chat_id, scope.topic_id),
    ).fetchone()
    if row is None:
        return Choices()
    return Choices(
        context=context_of(row),
        engine=None if row["engine"] is None else EngineId(row["engine"]),
        model=row["model"],
        target=row["target"],
        trigger_mode=row["trigger_mode"],
        thread=None
        if row["thread_engine"] is None
        else ResumeToken(EngineId(row["thread_engine"]), row["thread_value"]),
        drafting=bool(row["drafting"]),
    )


def put(conn: sqlite3.Connection, scope: Scope, choices: Choices) -> None:
    """Replace all choices of the scope; `Choices()` forgets it."""
    conn.execute(
        "DELETE FROM scopes WHERE transport = ? AND chat_id = ? AND topic_id IS ?",
        (scope.transport, scope.chat_id, scope.topic_id),
    )
    if choices == Choices():
        return
    thread = choices.thread
    conn.execute(
        "INSERT INTO scopes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            scope.transport,
            scope.chat_id,
            scope.topic_id,
            *context_columns(choices.context),
            choices.engine,
            choices.model,
            choices.target,
            choices.trigger_mode,
            None if thread is None else thread.engine,
            None if thread is None else thread.value,
            choices.drafting,
        ),
    )


def targets(conn: sqlite3.Connection) -> tuple[tuple[Scope, str], ...]:
    """Every scope whose prompts go somewhere else than to an engine, and where to."""
    rows = conn.execute("SELECT * FROM scopes WHERE target IS NOT NULL")
    return tuple(
        (Scope(row["transport"], row["chat_id"], row["topic_id"]), row["target"]) for row in rows
    )
