from __future__ import annotations

import sqlite3

from takopi.core.ids import MessageRef, RunId
from takopi.store import ledger, threads
from takopi.store.ledger import NewRun
from tests.store.rows import CHAT, CLAUDE, TOKEN, message, queue_run, start_run


def test_a_message_that_nobody_mapped_belongs_to_nothing(conn: sqlite3.Connection) -> None:
    queue_run(conn, prompt_message=1)

    for ref in (message(2), MessageRef("web", CHAT.chat_id, 1), MessageRef("telegram", 101, 1)):
        assert threads.run_of(conn, ref) is None
        assert threads.thread_of(conn, ref) is None
    assert threads.find(conn, TOKEN) is None


def test_a_prompt_that_is_tried_again_belongs_to_the_last_run(conn: sqlite3.Connection) -> None:
    first = start_run(conn, prompt_message=1)
    ledger.set_thread(conn, first, TOKEN, now_ms=1)
    second = queue_run(conn, prompt_message=1)

    assert threads.run_of(conn, message(1)) == second
    assert threads.thread_of(conn, message(1)) is None


def test_the_prompt_of_a_resumed_thread_belongs_to_it_at_once(conn: sqlite3.Connection) -> None:
    new = NewRun(CHAT, "go on", CLAUDE, thread=TOKEN, prompt_ref=message(1))
    ledger.add(conn, new, now_ms=1)

    assert threads.thread_of(conn, message(1)) == TOKEN


def test_a_message_of_a_run_that_is_gone_is_not_mapped(conn: sqlite3.Connection) -> None:
    threads.map_message(conn, message(1), run_id=RunId(99))

    assert threads.run_of(conn, message(1)) is None
