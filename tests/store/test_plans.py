from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from takopi.core.events import Usage
from takopi.core.ids import MessageRef, RunId
from takopi.store import grants, inbox, ledger, outbox, scopes, spooled, threads, upkeep
from takopi.store.inbox import InboxId
from takopi.store.opening import open_file
from takopi.store.schema import STEPS
from tests.store.rows import CHAT, CLAUDE, CWD, SOURCE, TOKEN, message

NOW_MS = 1_000_000
RUN = RunId(1)
SHORT = (
    "inbox_open",
    "runs_open",
    "outbox_open",
    "messages_lost",
    "web_messages_spooled",
    "web_uploads_spooled",
)
NEW = ledger.NewRun(CHAT, "fix it", CLAUDE, prompt_ref=message(1))


class Watched(sqlite3.Connection):
    """A connection that keeps the plan of every statement it is given."""

    plans: list[tuple[str, str]]

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        for row in super().execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall():
            self.plans.append((sql, row["detail"]))
        return super().execute(sql, parameters)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """A store with one run and all that belongs to it: a plan does not depend on how many."""
    opened = open_file(tmp_path / "state.db", steps=STEPS, busy_s=5)
    opened.reader.close()
    opened.writer.close()
    with closing(
        sqlite3.connect(tmp_path / "state.db", factory=Watched, isolation_level=None)
    ) as conn:
        conn.row_factory = sqlite3.Row
        conn.plans = []
        _live_through(conn, update_id=1)
        conn.plans.clear()
        yield conn


def _live_through(conn: sqlite3.Connection, update_id: int = 2) -> None:
    """One run from its update to its answer."""
    update = inbox.Update(update_id, CHAT.chat_id, b"hello")
    (received,) = inbox.record(conn, SOURCE, updates=[update], next_offset=3, now_ms=NOW_MS)
    outbox.unpark(conn, CHAT)
    inbox.take(conn, received.id)
    run = ledger.add(conn, NEW, now_ms=NOW_MS)
    inbox.settle(conn, received.id, "done", now_ms=NOW_MS)
    ledger.start(conn, run.id, cwd=CWD, now_ms=NOW_MS)
    ledger.set_progress(conn, run.id, message(2))
    ledger.set_thread(conn, run.id, TOKEN, now_ms=NOW_MS)
    scopes.put(conn, CHAT, scopes.Choices(thread=TOKEN))
    ledger.end(conn, run.id, "done", now_ms=NOW_MS, answer="done", usage=Usage())
    _put(conn, run.id)
    sent = outbox.take_next(conn, CHAT, now_ms=NOW_MS)
    assert sent is not None
    outbox.confirm(conn, sent.id, message_id=3, now_ms=NOW_MS)


def _put(conn: sqlite3.Connection, run_id: RunId) -> None:
    outbox.add(
        conn,
        CHAT,
        kind="answer",
        payload=b"done",
        now_ms=NOW_MS,
        run_id=run_id,
        dedupe_key=f"done:{run_id}",
    )


def _read_facts(conn: sqlite3.Connection) -> None:
    ref = MessageRef(CHAT.transport, CHAT.chat_id, 2)
    threads.run_of(conn, ref)
    threads.thread_of(conn, ref)
    threads.find(conn, TOKEN)
    scopes.get(conn, CHAT)
    ledger.find(conn, RUN)
    grants.has(conn, TOKEN, "run ls")


def _press(conn: sqlite3.Connection) -> None:
    ledger.retried_as(conn, RUN)
    run = ledger.find(conn, RUN)
    assert run is not None
    ledger.began_thread(conn, run)
    outbox.key_of(conn, RUN, message_id=3)
    outbox.payload_of(conn, RUN, message_id=3)
    outbox.knows(conn, "done:1")
    outbox.open_questions(conn, RUN)
    outbox.close_question(conn, "ask:1", now_ms=NOW_MS)


def _begin(conn: sqlite3.Connection) -> None:
    inbox.offset(conn, SOURCE)
    inbox.pending(conn)
    inbox.unfinished(conn)
    inbox.find(conn, InboxId(1))
    ledger.recover(conn, now_ms=NOW_MS)
    ledger.unfinished(conn)
    outbox.recover(conn, transport="telegram")
    outbox.due(conn)
    outbox.expire(conn, now_ms=NOW_MS)
    spooled.named(conn)


def _show_runs(conn: sqlite3.Connection) -> None:
    ledger.last(conn, 10, chat=CHAT)
    ledger.started_by(conn, InboxId(1))
    outbox.park(conn, CHAT, now_ms=NOW_MS)


def _prune(conn: sqlite3.Connection) -> None:
    upkeep.prune(conn, keep_days=90, now_ms=NOW_MS)


ROADS: list[Callable[[sqlite3.Connection], None]] = [
    _live_through,
    _read_facts,
    _press,
    _begin,
    _show_runs,
    _prune,
]


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.__name__.lstrip("_"))
def test_nothing_goes_through_all_rows_of_a_long_history(
    watched: Watched, road: Callable[[sqlite3.Connection], None]
) -> None:
    road(watched)
    assert watched.plans
    assert _scans(watched.plans) == []


def test_a_statement_that_goes_through_all_rows_is_seen(watched: Watched) -> None:
    watched.execute("SELECT * FROM runs WHERE prompt = 'x'")
    assert len(_scans(watched.plans)) == 1


def _scans(plans: list[tuple[str, str]]) -> list[str]:
    """Those that read a whole table, an index that holds every row of one, or all rows up to one.

    What is open has indexes of its own, which stay short: to read one of those whole is nothing.
    """
    return [
        f"{detail}: {sql}"
        for sql, detail in plans
        if (detail.startswith("SCAN") and not detail.endswith((*SHORT, "CONSTANT ROW")))
        or re.search(r"\(rowid[<>]", detail)
    ]
