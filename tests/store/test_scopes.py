from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from takopi.core.context import Context
from takopi.core.ids import Scope
from takopi.store import scopes
from takopi.store.scopes import Choices
from tests.store.rows import CHAT, CLAUDE, TOKEN

TOPIC = Scope("telegram", 100, 5)
ALL = Choices(Context("web", "main"), CLAUDE, "opus", "tmux:work", "all", TOKEN)


def test_choices_come_back_as_they_were_put(conn: sqlite3.Connection) -> None:
    scopes.put(conn, CHAT, ALL)

    assert scopes.get(conn, CHAT) == ALL


def test_a_chat_and_its_topics_choose_apart(conn: sqlite3.Connection) -> None:
    scopes.put(conn, CHAT, Choices(model="a"))
    scopes.put(conn, TOPIC, Choices(model="b"))
    scopes.put(conn, Scope("web", 100), Choices(model="c"))
    scopes.put(conn, Scope("telegram", 100, 0), Choices(model="d"))

    assert scopes.get(conn, CHAT).model == "a"
    assert scopes.get(conn, TOPIC).model == "b"
    assert scopes.get(conn, Scope("telegram", 100, 6)) == Choices()


@pytest.mark.parametrize("scope", [CHAT, TOPIC])
def test_one_choice_changes_without_the_others(conn: sqlite3.Connection, scope: Scope) -> None:
    scopes.put(conn, scope, ALL)
    scopes.put(conn, scope, replace(scopes.get(conn, scope), thread=None))

    assert scopes.get(conn, scope) == replace(ALL, thread=None)
    assert conn.execute("SELECT count(*) FROM scopes").fetchone()[0] == 1


def test_choosing_nothing_forgets_the_scope(conn: sqlite3.Connection) -> None:
    scopes.put(conn, TOPIC, ALL)
    scopes.put(conn, TOPIC, Choices())

    assert scopes.get(conn, TOPIC) == Choices()
    assert conn.execute("SELECT count(*) FROM scopes").fetchone()[0] == 0


@pytest.mark.parametrize("scope", [CHAT, TOPIC])
def test_the_table_itself_holds_one_row_a_scope(conn: sqlite3.Connection, scope: Scope) -> None:
    scopes.put(conn, scope, ALL)

    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        conn.execute("INSERT INTO scopes SELECT * FROM scopes")
