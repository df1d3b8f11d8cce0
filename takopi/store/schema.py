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
        part_of INTEGER,
        UNIQUE (source, update_id)
    ) STRICT
    """,
    "CREATE INDEX inbox_parts ON inbox (part_of) WHERE part_of IS NOT NULL",
    "CREATE INDEX inbox_open ON inbox (state, id) WHERE state IN ('new', 'taken')",
    "CREATE INDEX inbox_settled ON inbox (settled_ms)",
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
        cost_usd REAL,
        sender_id INTEGER,
        interactive INTEGER NOT NULL DEFAULT 1
    ) STRICT
    """,
    "CREATE INDEX runs_open ON runs (state, id) WHERE state IN ('queued', 'running')",
    "CREATE INDEX runs_retry ON runs (retry_of)",
    "CREATE INDEX runs_thread ON runs (engine, thread)",
    "CREATE INDEX runs_chat ON runs (transport, chat_id)",
    "CREATE INDEX runs_ended ON runs (ended_ms)",
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
    "CREATE INDEX messages_lost ON messages (run_id) WHERE run_id IS NULL AND thread IS NULL",
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
        thread_value TEXT,
        drafting INTEGER NOT NULL DEFAULT 0
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
    """
    CREATE INDEX outbox_message ON outbox (transport, chat_id, message_id)
        WHERE message_id IS NOT NULL
    """,
    # What was deleted stays as an empty row, so that a page that was away learns of it.
    """
    CREATE TABLE web_messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        change INTEGER NOT NULL UNIQUE,
        author TEXT NOT NULL CHECK (author IN ('person', 'takopi')),
        card BLOB NOT NULL,
        reply_to INTEGER,
        file_name TEXT,
        file BLOB,
        silent INTEGER NOT NULL DEFAULT 0,
        edited INTEGER NOT NULL DEFAULT 0,
        deleted INTEGER NOT NULL DEFAULT 0,
        client_key TEXT UNIQUE,
        uploads BLOB,
        sent_ms INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX web_messages_sent ON web_messages (sent_ms)",
    """
    CREATE TABLE web_uploads (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        data BLOB NOT NULL,
        client_key TEXT NOT NULL UNIQUE,
        sent_ms INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX web_uploads_sent ON web_uploads (sent_ms)",
    "CREATE INDEX outbox_ended ON outbox (ended_ms)",
    """
    CREATE TABLE drafts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        transport TEXT NOT NULL,
        chat_id INTEGER NOT NULL,
        topic_id INTEGER,
        words TEXT,
        step INTEGER NOT NULL DEFAULT 0,
        cards INTEGER NOT NULL DEFAULT 0,
        card_id INTEGER
    ) STRICT
    """,
    "CREATE UNIQUE INDEX drafts_topic ON drafts (transport, chat_id, topic_id)",
    "CREATE UNIQUE INDEX drafts_chat ON drafts (transport, chat_id) WHERE topic_id IS NULL",
    """
    CREATE TABLE draft_versions (
        draft_id INTEGER NOT NULL REFERENCES drafts (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (draft_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE draft_jobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        transport TEXT NOT NULL,
        chat_id INTEGER NOT NULL,
        topic_id INTEGER,
        kind TEXT NOT NULL CHECK (kind IN ('text', 'voice', 'revert', 'run')),
        text TEXT NOT NULL,
        message_id INTEGER,
        duration_s INTEGER NOT NULL,
        size_bytes INTEGER,
        step INTEGER NOT NULL,
        state TEXT NOT NULL DEFAULT 'waiting'
            CHECK (state IN ('waiting', 'failed', 'append', 'sending')),
        why TEXT NOT NULL DEFAULT ''
    ) STRICT
    """,
    "CREATE INDEX draft_jobs_scope ON draft_jobs (transport, chat_id, topic_id)",
    """
    CREATE TABLE reviews (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        transport TEXT NOT NULL,
        chat_id INTEGER NOT NULL,
        topic_id INTEGER,
        root BLOB NOT NULL UNIQUE,
        state BLOB NOT NULL
    ) STRICT
    """,
)

# Files that are on their way lie beside the database: a row names one, and says how big it is.
_VERSION_2: Step = (
    "ALTER TABLE outbox ADD COLUMN spooled TEXT",
    "ALTER TABLE web_messages ADD COLUMN spooled TEXT",
    "ALTER TABLE web_messages ADD COLUMN spooled_bytes INTEGER",
    "ALTER TABLE web_uploads ADD COLUMN spooled TEXT",
    "ALTER TABLE web_uploads ADD COLUMN spooled_bytes INTEGER",
    "CREATE INDEX web_messages_spooled ON web_messages (spooled) WHERE spooled IS NOT NULL",
    "CREATE INDEX web_uploads_spooled ON web_uploads (spooled) WHERE spooled IS NOT NULL",
)

STEPS: tuple[Step, ...] = (_VERSION_1, _VERSION_2)
