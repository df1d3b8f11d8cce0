from __future__ import annotations

import sqlite3

import pytest

from takopi.core.errors import Refused
from takopi.core.ids import RunId, Scope
from takopi.store import ledger, outbox, threads
from takopi.store.outbox import PARKED_MAX_MS, Due, Send, SendId
from tests.store.rows import CHAT, TOKEN, message, start_run

OTHER = Scope("telegram", 200)


def add(
    conn: sqlite3.Connection, text: bytes, *, scope: Scope = CHAT, run_id: RunId | None = None
) -> SendId:
    return outbox.add(conn, scope, kind="answer", payload=text, now_ms=1000, run_id=run_id)


def take(conn: sqlite3.Connection, *, chat: Scope = CHAT, now_ms: int = 5000) -> Send:
    send = outbox.take_next(conn, chat, now_ms=now_ms)
    assert send is not None
    return send


def test_a_chat_sends_in_the_order_it_was_told_topics_included(conn: sqlite3.Connection) -> None:
    add(conn, b"one", scope=Scope("telegram", 100, 5))
    add(conn, b"two")
    first = take(conn)
    outbox.confirm(conn, first.id, message_id=50, now_ms=1)

    assert (first.payload, first.scope.topic_id) == (b"one", 5)
    assert take(conn).payload == b"two"


def test_one_send_of_a_chat_is_on_its_way_at_a_time(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    add(conn, b"two")
    take(conn)

    assert outbox.take_next(conn, CHAT, now_ms=5000) is None


def test_a_chat_does_not_wait_for_another(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    add(conn, b"other", scope=OTHER)
    take(conn)

    assert take(conn, chat=OTHER).payload == b"other"


def test_what_was_put_back_stays_first_and_waits_for_its_time(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    add(conn, b"two")
    first = take(conn)
    outbox.put_back(conn, first.id, not_before_ms=9000)

    assert outbox.take_next(conn, CHAT, now_ms=8999) is None
    again = take(conn, now_ms=9000)
    assert (again.id, again.attempts, again.maybe_sent) == (first.id, 2, False)


def test_a_doubt_about_a_send_is_never_forgotten(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    outbox.put_back(conn, take(conn).id, not_before_ms=0, maybe_sent=True)
    outbox.put_back(conn, take(conn).id, not_before_ms=0)

    assert take(conn).maybe_sent


def test_what_was_on_its_way_at_a_crash_waits_again_and_may_have_arrived(
    conn: sqlite3.Connection,
) -> None:
    first = add(conn, b"one")
    add(conn, b"two")
    take(conn)

    assert outbox.recover(conn) == 1
    again = take(conn, now_ms=0)
    assert (again.id, again.maybe_sent) == (first, True)
    outbox.confirm(conn, first, message_id=1, now_ms=1)
    assert not take(conn).maybe_sent


def test_a_transport_that_is_named_recovers_its_own_alone(conn: sqlite3.Connection) -> None:
    web = Scope("web", 1)
    add(conn, b"one")
    add(conn, b"two", scope=web)
    take(conn)
    sending = take(conn, chat=web)

    assert outbox.recover(conn, transport="telegram") == 1
    assert take(conn).maybe_sent
    outbox.confirm(conn, sending.id, message_id=1, now_ms=1)


def test_an_arrived_answer_belongs_to_its_run_and_thread(conn: sqlite3.Connection) -> None:
    run_id = start_run(conn)
    ledger.set_thread(conn, run_id, TOKEN, now_ms=1)
    add(conn, b"one", run_id=run_id)
    outbox.confirm(conn, take(conn).id, message_id=50, now_ms=1)

    assert threads.run_of(conn, message(50)) == run_id
    assert threads.thread_of(conn, message(50)) == TOKEN


def test_a_notice_of_no_run_belongs_to_none(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    outbox.confirm(conn, take(conn).id, message_id=50, now_ms=1)

    assert threads.run_of(conn, message(50)) is None
    assert outbox.take_next(conn, CHAT, now_ms=5000) is None


def test_a_known_key_adds_nothing_even_when_it_was_sent(conn: sqlite3.Connection) -> None:
    def add_keyed() -> SendId:
        return outbox.add(conn, CHAT, kind="notice", payload=b"x", now_ms=1, dedupe_key="run:1:end")

    first = add_keyed()
    assert add_keyed() == first
    outbox.confirm(conn, take(conn).id, message_id=50, now_ms=1)

    assert add_keyed() == first
    assert outbox.take_next(conn, CHAT, now_ms=5000) is None


def test_the_chat_goes_on_after_a_send_that_failed(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    add(conn, b"two")
    outbox.fail(conn, take(conn).id, error="too long", now_ms=1)

    assert take(conn).payload == b"two"


@pytest.mark.parametrize("state", ["waiting", "sent", "parked", "unknown"])
def test_only_what_is_on_its_way_can_arrive_fail_or_come_back(
    conn: sqlite3.Connection, state: str
) -> None:
    send_id = add(conn, b"one")
    if state == "sent":
        outbox.confirm(conn, take(conn).id, message_id=50, now_ms=1)
    if state == "parked":
        outbox.park(conn, CHAT, now_ms=1)
    if state == "unknown":
        send_id = SendId(99)

    with pytest.raises(Refused, match="cannot become sent"):
        outbox.confirm(conn, send_id, message_id=51, now_ms=2)
    with pytest.raises(Refused, match="cannot become failed"):
        outbox.fail(conn, send_id, error="x", now_ms=2)
    with pytest.raises(Refused, match="cannot become waiting"):
        outbox.put_back(conn, send_id, not_before_ms=0)


def test_a_parked_chat_sends_nothing_and_keeps_its_order(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    add(conn, b"two")
    add(conn, b"other", scope=OTHER)
    take(conn)

    assert outbox.park(conn, CHAT, now_ms=2000) == 2
    add(conn, b"three")
    assert outbox.take_next(conn, CHAT, now_ms=5000) is None
    assert [due.chat for due in outbox.due(conn)] == [OTHER]

    assert outbox.unpark(conn, CHAT) == 3
    sent: list[bytes] = []
    for number in range(3):
        send = take(conn)
        sent.append(send.payload)
        outbox.confirm(conn, send.id, message_id=number, now_ms=1)
    assert sent == [b"one", b"two", b"three"]


def test_what_comes_back_from_parking_does_not_wait(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    outbox.put_back(conn, take(conn).id, not_before_ms=10**12)
    outbox.park(conn, CHAT, now_ms=2000)
    outbox.unpark(conn, CHAT)

    assert take(conn).payload == b"one"


def test_parked_sends_are_given_up_after_seven_days_each(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    outbox.park(conn, CHAT, now_ms=2000)
    outbox.add(conn, CHAT, kind="notice", payload=b"two", now_ms=3000)
    add(conn, b"other", scope=OTHER)

    assert outbox.expire(conn, now_ms=2000 + PARKED_MAX_MS - 1) == ()
    expired = outbox.expire(conn, now_ms=2000 + PARKED_MAX_MS)
    assert [(send.payload, send.state) for send in expired] == [(b"one", "failed")]
    assert outbox.unpark(conn, CHAT) == 1
    assert take(conn).payload == b"two"


def test_due_names_each_chat_whose_next_send_waits(conn: sqlite3.Connection) -> None:
    add(conn, b"one")
    outbox.put_back(conn, take(conn).id, not_before_ms=7000)
    add(conn, b"two")
    add(conn, b"other", scope=OTHER)
    busy = Scope("telegram", 300)
    add(conn, b"busy", scope=busy)
    add(conn, b"behind", scope=busy)
    take(conn, chat=busy)

    assert outbox.due(conn) == (Due(OTHER, 0), Due(CHAT, 7000))


def ask(conn: sqlite3.Connection, run_id: RunId, key: str) -> SendId:
    return outbox.add(
        conn, CHAT, kind="question", payload=b"?", now_ms=1, run_id=run_id, dedupe_key=key
    )


def test_a_message_of_a_run_knows_its_key(conn: sqlite3.Connection) -> None:
    run_id = start_run(conn)
    ask(conn, run_id, "ask:1")
    outbox.confirm(conn, take(conn).id, message_id=60, now_ms=1)
    assert outbox.key_of(conn, run_id, message_id=60) == "ask:1"
    assert outbox.key_of(conn, run_id, message_id=61) is None


def test_a_question_that_is_closed_tells_its_message_once(conn: sqlite3.Connection) -> None:
    run_id = start_run(conn)
    ask(conn, run_id, "ask:1")
    outbox.confirm(conn, take(conn).id, message_id=60, now_ms=1)
    assert outbox.open_questions(conn, run_id) == (("ask:1", b"?"),)
    assert outbox.close_question(conn, "ask:1", now_ms=2) == 60
    assert outbox.close_question(conn, "ask:1", now_ms=2) is None
    assert outbox.open_questions(conn, run_id) == ()


def test_a_question_that_nobody_needs_is_not_sent(conn: sqlite3.Connection) -> None:
    run_id = start_run(conn)
    ask(conn, run_id, "ask:1")
    assert outbox.close_question(conn, "ask:1", now_ms=2) is None
    assert outbox.take_next(conn, CHAT, now_ms=5000) is None


@pytest.mark.parametrize("size", [outbox.KEPT_BYTES, outbox.KEPT_BYTES + 1])
def test_a_file_of_no_run_is_not_kept_once_it_has_arrived(
    conn: sqlite3.Connection, size: int
) -> None:
    payload = bytes(size)
    for run_id in (None, start_run(conn)):
        add(conn, payload, run_id=run_id)
        outbox.confirm(conn, take(conn).id, message_id=50 + (run_id or 0), now_ms=1)
    kept = [row["payload"] for row in conn.execute("SELECT payload FROM outbox ORDER BY id")]
    assert kept == [payload if size == outbox.KEPT_BYTES else b"", payload]
