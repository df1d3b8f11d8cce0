from __future__ import annotations

import sqlite3

from takopi.store import inbox
from tests.store.rows import receive


def test_parts_are_done_with_the_join_and_come_with_the_whole(conn: sqlite3.Connection) -> None:
    whole, one, two = receive(conn, 7, 8, 9)
    assert inbox.join(conn, whole.id, [two.id, one.id], now_ms=5)
    assert [row.id for row in inbox.pending(conn)] == [whole.id]
    assert [row.id for row in inbox.parts_of(conn, whole.id)] == [one.id, two.id]


def test_what_was_taken_gets_no_parts(conn: sqlite3.Connection) -> None:
    whole, part = receive(conn, 7, 8)
    inbox.take(conn, whole.id)
    assert not inbox.join(conn, whole.id, [part.id], now_ms=5)
    assert [row.id for row in inbox.pending(conn)] == [part.id]


def test_part_that_somebody_took_is_not_joined(conn: sqlite3.Connection) -> None:
    whole, part = receive(conn, 7, 8)
    inbox.take(conn, part.id)
    assert inbox.join(conn, whole.id, [part.id], now_ms=5)
    assert inbox.parts_of(conn, whole.id) == ()


def test_joining_again_changes_nothing(conn: sqlite3.Connection) -> None:
    whole, part = receive(conn, 7, 8)
    for _ in range(2):
        assert inbox.join(conn, whole.id, [part.id], now_ms=5)
    assert [row.id for row in inbox.parts_of(conn, whole.id)] == [part.id]


def test_an_update_is_never_a_part_of_itself(conn: sqlite3.Connection) -> None:
    (got,) = receive(conn, 7)

    assert inbox.join(conn, got.id, [got.id], now_ms=2000)
    assert inbox.pending(conn) == (got,)
    assert inbox.parts_of(conn, got.id) == ()
