"""A store that has been in use for months: as many rows as that leaves, of the real kinds."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec

from takopi.core.events import Usage
from takopi.core.ids import EngineId, MessageRef, ResumeToken, Scope
from takopi.core.outgoing import Card, Outgoing, Text
from takopi.store import inbox, ledger, outbox
from takopi.store.opening import open_file
from takopi.store.schema import STEPS

ROWS_PER_RUN = 5
"""One of the inbox, one of the ledger, two messages beside the prompt's, one of the outbox."""

_DAYS = 60
_FIRST_MESSAGE = 10_000_000
_ANSWER = "The parser dropped the last field when a line ended early; it keeps it now. " * 20
_UPDATE = b'{"update_id":1,"message":{"message_id":1,"text":"%s"}}' % (b"fix the parser " * 40)


def fill(path: Path, *, rows: int, chat: Scope, source: str, next_offset: int) -> None:
    """Put that many rows into the store at `path`, all of them over and done with."""
    opened = open_file(path, steps=STEPS, busy_s=5)
    with closing(opened.writer) as conn, closing(opened.reader):
        conn.execute("BEGIN")
        count = rows // ROWS_PER_RUN
        first_ms = int((time.time() - _DAYS * 24 * 3600) * 1000)
        for number in range(count):
            moment_ms = first_ms + number * _DAYS * 24 * 3600 * 1000 // count
            update_id = next_offset - count + number
            _add_run(conn, number, chat=chat, source=source, update_id=update_id, now_ms=moment_ms)
        conn.execute("COMMIT")


def _add_run(
    conn: sqlite3.Connection, number: int, *, chat: Scope, source: str, update_id: int, now_ms: int
) -> None:
    engine = EngineId("demo")
    prompt_ref, progress_ref, answer_ref = (
        MessageRef(chat.transport, chat.chat_id, _FIRST_MESSAGE + number * 3 + place)
        for place in range(3)
    )
    (received,) = inbox.record(
        conn,
        source,
        updates=[inbox.Update(update_id, chat.chat_id, _UPDATE)],
        next_offset=update_id + 1,
        now_ms=now_ms,
    )
    inbox.take(conn, received.id)
    new = ledger.NewRun(
        chat, "fix the parser " * 40, engine, prompt_ref=prompt_ref, inbox_id=received.id
    )
    run = ledger.add(conn, new, now_ms=now_ms)
    inbox.settle(conn, received.id, "done", now_ms=now_ms)
    ledger.start(conn, run.id, cwd=Path("/home/me/project"), now_ms=now_ms)
    ledger.set_progress(conn, run.id, progress_ref)
    thread = ResumeToken(engine, f"{number:012x}")
    ledger.set_thread(conn, run.id, thread, now_ms=now_ms, model="demo-1")
    ledger.end(conn, run.id, "done", now_ms=now_ms + 60_000, answer=_ANSWER, usage=Usage(1000, 300))
    message = Outgoing(Card(Text(_ANSWER)), reply_to=prompt_ref.message_id)
    outbox.add(
        conn,
        chat,
        kind="answer",
        payload=msgspec.msgpack.encode(message),
        now_ms=now_ms,
        run_id=run.id,
        dedupe_key=f"done:{run.id}:0",
    )
    sent = outbox.take_next(conn, chat, now_ms=now_ms)
    assert sent is not None
    outbox.confirm(conn, sent.id, message_id=answer_ref.message_id, now_ms=now_ms)
