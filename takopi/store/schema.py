"""The tables of `state.db`, as steps from one version to the next; a step once released stays.

A step is a tuple of statements, so that all steps of a migration fit into one transaction.
Times are milliseconds since the epoch. `AUTOINCREMENT` keeps the id of a removed row from being
given again: an id stands on buttons that outlive the row.
"""

from __future__ import annotations

from typing import TypeAlias

Step: TypeAlias = tuple[str, ...]

_VERSION_1: Step = (
    """
    CREATE TABLE offsets (
        source TEXT PRIMARY KEY,
        next_offset INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE inbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        source TEXT NOT NULL,
        update_id INTEGER NOT NULL,
        chat_id INTEGER NOT NULL,
        received_ms INTEGER NOT NULL,
        payload BLOB NOT NULL,
        state TEXT NOT NULL DEFAULT 'new'
            CHECK (state IN ('new', 'taken', 'done', 'refused', 'reported')),
        settled_ms INTEGER,
        UNIQUE (source, update_id)
    ) STRICT
    """,
    "CREATE INDEX inbox_open ON inbox (state, id) WHERE state IN ('new', 'taken')",
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        state TEXT NOT NULL DEFAULT 'queued'
            CHECK (state IN ('queued', 'running', 'done', 'error', 'cancelled', 'interrupted')),
        inbox_id INTEGER UNIQUE REFERENCES inbox (id) ON DELETE SET NULL,
        retry_of INTEGER REFERENCES runs (id) ON DELETE SET NULL,
        transport TEXT NOT NULL,
        chat_id INTEGER NOT NULL,
        topic_id INTEGER,
        prompt TEXT NOT NULL,
        prompt_message_id INTEGER,
        progress_message_id INTEGER,
        project TEXT,
        branch TEXT,
        cwd BLOB,
        engine TEXT NOT NULL,
        model TEXT,
        thread TEXT,
        created_ms INTEGER NOT NULL,
        started_ms INTEGER,
        ended_ms INTEGER,
        answer TEXT,
        error TEXT,
        input_tokens INTEGER,
        output_tokens INTEGER,
        cached_tokens INTEGER,
        cost_usd REAL
    ) STRICT
    """,
    "CREATE INDEX runs_open ON runs (state, id) WHERE state IN ('queued', 'running')",
    "CREATE INDEX runs_retry ON runs (retry_of)",
    """
    CREATE TABLE threads (
        engine TEXT NOT NULL,
        value TEXT NOT NULL,
        project TEXT,
        branch TEXT,
        cwd BLOB,
        used_ms INTEGER NOT NULL,
        PRIMARY KEY (engine, value)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE grants (
        engine TEXT NOT NULL,
        thread TEXT NOT NULL,
        what TEXT NOT NULL,
        PRIMARY KEY (engine, thread, what)
    ) STRICT, WITHOUT ROWID
    """,
    # A message keeps its thread by name, not by its run: runs are pruned, replies come years later.
    """
    CREATE TABLE messages (
        transport TEXT NOT NULL,
        chat_id INTEGER NOT NULL,
        message_id INTEGER NOT NULL,
        run_id INTEGER REFERENCES runs (id) ON DELETE SET NULL,
        engine TEXT,
        thread TEXT,
        PRIMARY KEY (transport, chat_id, message_id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX messages_run ON messages (run_id)",
    """
    CREATE TABLE scopes (
        transport TEXT NOT NULL,
        chat_id INTEGER NOT NULL,
        topic_id INTEGER,
        project TEXT,
        branch TEXT,
        engine TEXT,
        model TEXT,
        target TEXT,
        trigger_mode TEXT CHECK (trigger_mode IN ('all', 'mention')),
        thread_engine TEXT,
        thread_value TEXT
    ) STRICT
    """,
    "CREATE UNIQUE INDEX scopes_topic ON scopes (transport, chat_id, topic_id)",
    # NULLs are distinct to a unique index: a chat itself needs its own.
    "CREATE UNIQUE INDEX scopes_chat ON scopes (transport, chat_id) WHERE topic_id IS NULL",
    """
    CREATE TABLE outbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        transport TEXT NOT NULL,
        chat_id INTEGER NOT NULL,
        topic_id INTEGER,
        kind TEXT NOT NULL CHECK (kind IN ('answer', 'question', 'notice')),
        payload BLOB NOT NULL,
        run_id INTEGER REFERENCES runs (id) ON DELETE SET NULL,
        dedupe_key TEXT UNIQUE,
        state TEXT NOT NULL
            CHECK (state IN ('waiting', 'sending', 'sent', 'parked', 'failed')),
        attempts INTEGER NOT NULL DEFAULT 0,
        maybe_sent INTEGER NOT NULL DEFAULT 0,
        not_before_ms INTEGER NOT NULL DEFAULT 0,
        created_ms INTEGER NOT NULL,
        parked_ms INTEGER,
        ended_ms INTEGER,
        message_id INTEGER,
        error TEXT
    ) STRICT
    """,
    """
    CREATE INDEX outbox_open ON outbox (transport, chat_id, id)
        WHERE state IN ('waiting', 'sending', 'parked')
    """,
    "CREATE INDEX outbox_run ON outbox (run_id)",
)

STEPS: tuple[Step, ...] = (_VERSION_1,)
