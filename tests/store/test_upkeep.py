from __future__ import annotations

import sqlite3

from takopi.core.ids import MessageRef, RunId, Scope
from takopi.store import inbox, ledger, outbox, scopes, threads
from takopi.store.ledger import NewRun
from takopi.store.scopes import Choices
from takopi.store.upkeep import Pruned, move_chat, prune
from tests.store.rows import CHAT, CLAUDE, TOKEN, message, queue_run, receive, start_run

DAY = 24 * 3600 * 1000
NEW = Scope("telegram", -100200)


def finish(conn: sqlite3.Connection, *, at_ms: int, prompt_message: int = 1) -> RunId:
    run_id = start_run(conn, prompt_message=prompt_message)
    ledger.end(conn, run_id, "done", now_ms=at_ms)
    return run_id


def settle(conn: sqlite3.Connection, number: int, *, at_ms: int) -> inbox.InboxId:
    (got,) = receive(conn, number)
    inbox.take(conn, got.id)
    inbox.settle(conn, got.id, "done", now_ms=at_ms)
    return got.id


def send(conn: sqlite3.Connection, *, at_ms: int) -> None:
    outbox.add(conn, CHAT, kind="notice", payload=b"x", now_ms=1)
    taken = outbox.take_next(conn, CHAT, now_ms=1)
    assert taken is not None
    outbox.confirm(conn, taken.id, message_id=1000, now_ms=at_ms)


def test_finished_rows_leave_after_their_days_and_not_before(conn: sqlite3.Connection) -> None:
    now = 200 * DAY
    for at_ms in (now - 90 * DAY - 1, now - 90 * DAY):
        finish(conn, at_ms=at_ms)
        send(conn, at_ms=at_ms)
        settle(conn, at_ms, at_ms=at_ms)

    assert prune(conn, keep_days=90, now_ms=now) == Pruned(1, 1, 1)
    assert prune(conn, keep_days=90, now_ms=now) == Pruned(0, 0, 0)


def test_the_way_from_a_message_to_its_thread_survives_its_run(conn: sqlite3.Connection) -> None:
    run_id = start_run(conn, prompt_message=1)
    ledger.set_thread(conn, run_id, TOKEN, now_ms=1)
    ledger.end(conn, run_id, "done", now_ms=2)
    finish(conn, at_ms=2, prompt_message=2)

    prune(conn, keep_days=1, now_ms=100 * DAY)

    assert ledger.find(conn, run_id) is None
    assert threads.run_of(conn, message(1)) is None
    assert threads.thread_of(conn, message(1)) == TOKEN
    assert threads.find(conn, TOKEN) is not None
    assert conn.execute("SELECT count(*) FROM messages").fetchone()[0] == 1


def test_what_is_not_finished_stays_however_old(conn: sqlite3.Connection) -> None:
    receive(conn, 1)
    (taken,) = receive(conn, 2)
    inbox.take(conn, taken.id)
    queue_run(conn)
    start_run(conn)
    outbox.add(conn, CHAT, kind="notice", payload=b"x", now_ms=1)

    assert prune(conn, keep_days=1, now_ms=1000 * DAY) == Pruned(0, 0, 0)


def test_a_run_stays_until_its_answer_has_arrived(conn: sqlite3.Connection) -> None:
    run_id = finish(conn, at_ms=2)
    outbox.add(conn, CHAT, kind="answer", payload=b"x", now_ms=3, run_id=run_id)

    assert prune(conn, keep_days=1, now_ms=100 * DAY).runs == 0
    taken = outbox.take_next(conn, CHAT, now_ms=4)
    assert taken is not None
    outbox.confirm(conn, taken.id, message_id=7, now_ms=5)
    assert prune(conn, keep_days=1, now_ms=100 * DAY) == Pruned(0, 1, 1)


def test_an_update_that_may_come_again_is_still_known(conn: sqlite3.Connection) -> None:
    settle(conn, 1, at_ms=1001)

    assert prune(conn, keep_days=0, now_ms=1000 + 2 * DAY).inbox == 0
    assert receive(conn, 1) == ()
    assert prune(conn, keep_days=0, now_ms=1001 + 2 * DAY).inbox == 1


def test_the_numbers_of_removed_rows_are_not_given_again(conn: sqlite3.Connection) -> None:
    run_id = finish(conn, at_ms=2)
    inbox_id = settle(conn, 1, at_ms=2)
    prune(conn, keep_days=0, now_ms=100 * DAY)

    assert queue_run(conn) > run_id
    assert receive(conn, 2)[0].id > inbox_id


def test_a_run_outlives_the_message_and_the_run_it_came_from(conn: sqlite3.Connection) -> None:
    inbox_id = settle(conn, 1, at_ms=2)
    first = finish(conn, at_ms=2)
    new = NewRun(CHAT, "x", CLAUDE, inbox_id=inbox_id, retry_of=first)
    run_id = ledger.add(conn, new, now_ms=3).id

    prune(conn, keep_days=0, now_ms=100 * DAY)

    run = ledger.find(conn, run_id)
    assert run is not None
    assert (run.inbox_id, run.retry_of, run.state) == (None, None, "queued")


def test_what_waits_for_a_chat_follows_it_and_is_let_go(conn: sqlite3.Connection) -> None:
    for text in (b"one", b"two"):
        outbox.add(conn, CHAT, kind="notice", payload=text, now_ms=1)
    outbox.add(conn, Scope("web", CHAT.chat_id), kind="notice", payload=b"web", now_ms=1)
    outbox.park(conn, CHAT, now_ms=1)

    move_chat(conn, CHAT, new=NEW)

    assert outbox.take_next(conn, CHAT, now_ms=9) is None
    taken = outbox.take_next(conn, NEW, now_ms=9)
    assert taken is not None
    assert (taken.payload, taken.scope) == (b"one", NEW)
    assert {due.chat for due in outbox.due(conn)} == {Scope("web", CHAT.chat_id)}


def test_open_runs_follow_their_chat_without_messages_that_are_not_there(
    conn: sqlite3.Connection,
) -> None:
    ended = finish(conn, at_ms=3, prompt_message=1)
    queued = queue_run(conn, prompt_message=2)
    ledger.set_progress(conn, queued, message(3))

    move_chat(conn, CHAT, new=NEW)

    moved, left = ledger.find(conn, queued), ledger.find(conn, ended)
    assert moved is not None
    assert left is not None
    assert (moved.scope, moved.prompt_ref, moved.progress_ref) == (NEW, None, None)
    assert (left.scope, left.prompt_ref) == (CHAT, message(1))
    assert threads.run_of(conn, message(2)) == queued
    assert threads.run_of(conn, MessageRef("telegram", NEW.chat_id, 2)) is None


def test_choices_follow_their_chat_unless_it_has_newer_ones(conn: sqlite3.Connection) -> None:
    topic = Scope("telegram", CHAT.chat_id, 5)
    scopes.put(conn, CHAT, Choices(model="old"))
    scopes.put(conn, topic, Choices(model="topic"))
    scopes.put(conn, NEW, Choices(model="new"))

    move_chat(conn, CHAT, new=NEW)

    assert scopes.get(conn, NEW).model == "new"
    assert scopes.get(conn, Scope("telegram", NEW.chat_id, 5)).model == "topic"
    assert scopes.get(conn, CHAT) == scopes.get(conn, topic) == Choices()
