"""The smallest things to put into a store, for tests that care about something else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from takopi.core.ids import EngineId, MessageRef, ResumeToken, RunId, Scope
from takopi.store import inbox, ledger

SOURCE = "telegram:1"
CHAT = Scope("telegram", 100)
CLAUDE = EngineId("claude")
TOKEN = ResumeToken(CLAUDE, "abc")
CWD = Path("/home/me/project")


def message(number: int, *, chat: Scope = CHAT) -> MessageRef:
    return MessageRef(chat.transport, chat.chat_id, number)


def receive(conn: sqlite3.Connection, *update_ids: int) -> tuple[inbox.Received, ...]:
    return inbox.record(
        conn,
        SOURCE,
        updates=[inbox.Update(number, CHAT.chat_id, b"hello") for number in update_ids],
        next_offset=max(update_ids) + 1,
        now_ms=1000,
    )


def queue_run(conn: sqlite3.Connection, *, prompt_message: int = 1) -> RunId:
    new = ledger.NewRun(CHAT, "fix it", CLAUDE, prompt_ref=message(prompt_message))
    return ledger.add(conn, new, now_ms=1000).id


def start_run(conn: sqlite3.Connection, *, prompt_message: int = 1) -> RunId:
    run_id = queue_run(conn, prompt_message=prompt_message)
    ledger.start(conn, run_id, cwd=CWD, now_ms=2000)
    return run_id
