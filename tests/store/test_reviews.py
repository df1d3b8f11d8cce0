from __future__ import annotations

import sqlite3
from pathlib import Path

from takopi.core.ids import Scope
from takopi.store import reviews
from takopi.store.upkeep import move_chat
from tests.store.rows import CHAT

ROOT = Path("/srv/\udce9")
"""A folder whose name is no Unicode."""


def test_folder_has_one_review_and_its_number_is_never_given_again(
    conn: sqlite3.Connection,
) -> None:
    first = reviews.begin(conn, CHAT, ROOT, state=b"one")
    other = reviews.begin(conn, CHAT, Path("/srv/other"), state=b"other")
    second = reviews.begin(conn, CHAT, ROOT, state=b"two")
    reviews.save(conn, second, b"three")
    reviews.end(conn, other)
    assert [(row.id, row.root, row.state) for row in reviews.every(conn)] == [
        (second, ROOT, b"three")
    ]
    reviews.end(conn, second)
    assert reviews.begin(conn, CHAT, ROOT, state=b"") > second > first


def test_review_goes_along_with_a_chat_that_moves(conn: sqlite3.Connection) -> None:
    topic, new = Scope(CHAT.transport, CHAT.chat_id, 7), Scope(CHAT.transport, -100500)
    reviews.begin(conn, topic, ROOT, state=b"")
    move_chat(conn, CHAT, new=new)
    assert [row.scope for row in reviews.every(conn)] == [Scope(CHAT.transport, -100500, 7)]
