from __future__ import annotations

import sqlite3

import pytest

from takopi.core.errors import Refused
from takopi.store import inbox
from takopi.store.inbox import InboxId, Update
from tests.store.rows import SOURCE, receive


def test_a_repeated_batch_brings_nothing_new(conn: sqlite3.Connection) -> None:
    first = receive(conn, 7, 8)
    again = receive(conn, 7, 8, 9)

    assert [got.update_id for got in first] == [7, 8]
    assert [got.update_id for got in again] == [9]
    assert [got.update_id for got in inbox.pending(conn)] == [7, 8, 9]


def test_a_repeat_of_a_settled_update_does_not_wake_it(conn: sqlite3.Connection) -> None:
    (got,) = receive(conn, 7)
    inbox.take(conn, got.id)
    inbox.settle(conn, got.id, "done", now_ms=2000)

    assert receive(conn, 7) == ()
    assert inbox.pending(conn) == ()


def test_another_bots_numbers_do_not_clash(conn: sqlite3.Connection) -> None:
    receive(conn, 7)
    other = inbox.record(
        conn, "telegram:2", updates=[Update(7, 5, b"x")], next_offset=8, now_ms=1000
    )

    assert [got.source for got in other] == ["telegram:2"]


def test_the_offset_is_each_sources_own_and_may_go_back(conn: sqlite3.Connection) -> None:
    assert inbox.offset(conn, SOURCE) is None
    inbox.record(conn, SOURCE, updates=(), next_offset=900, now_ms=1)
    inbox.record(conn, SOURCE, updates=(), next_offset=12, now_ms=1)
    inbox.record(conn, "web", updates=[Update(1, 5, b"x")], next_offset=None, now_ms=1)

    assert inbox.offset(conn, SOURCE) == 12
    assert inbox.offset(conn, "web") is None


def test_an_update_keeps_every_byte_and_its_time(conn: sqlite3.Connection) -> None:
    payload = bytes(range(256))
    (got,) = inbox.record(
        conn, SOURCE, updates=[Update(3, -1001234567890, payload)], next_offset=4, now_ms=77
    )

    assert inbox.find(conn, got.id) == got
    assert (got.payload, got.chat_id, got.received_ms, got.state) == (
        payload,
        -1001234567890,
        77,
        "new",
    )


def test_an_update_is_taken_once(conn: sqlite3.Connection) -> None:
    (got,) = receive(conn, 7)

    assert inbox.take(conn, got.id)
    assert not inbox.take(conn, got.id)
    assert not inbox.take(conn, InboxId(999))


def test_what_was_taken_and_not_settled_is_unfinished_and_not_pending(
    conn: sqlite3.Connection,
) -> None:
    first, second, third = receive(conn, 7, 8, 9)
    inbox.take(conn, first.id)
    inbox.take(conn, second.id)
    inbox.settle(conn, second.id, "refused", now_ms=2000)

    assert [got.id for got in inbox.unfinished(conn)] == [first.id]
    assert [got.id for got in inbox.pending(conn)] == [third.id]


@pytest.mark.parametrize("state", ["new", "done", "unknown"])
def test_only_what_was_taken_can_be_settled(conn: sqlite3.Connection, state: str) -> None:
    (got,) = receive(conn, 7)
    inbox_id = InboxId(999) if state == "unknown" else got.id
    if state == "done":
        inbox.take(conn, got.id)
        inbox.settle(conn, got.id, "done", now_ms=2000)

    with pytest.raises(Refused, match="cannot become reported"):
        inbox.settle(conn, inbox_id, "reported", now_ms=3000)
