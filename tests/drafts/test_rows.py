from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from takopi.core.ids import MessageRef, Scope
from takopi.drafts.machine import with_version
from takopi.store import drafts as rows
from takopi.store.drafts import Draft, NewJob
from takopi.store.opening import open_file
from takopi.store.schema import STEPS
from takopi.store.upkeep import move_chat

OLD, NEW = Scope("telegram", -100), Scope("telegram", -1001234)


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    opened = open_file(tmp_path / "state.db", steps=STEPS, busy_s=5)
    opened.writer.execute("BEGIN")
    yield opened.writer
    opened.reader.close()
    opened.writer.close()


def begin(conn: sqlite3.Connection, scope: Scope, *versions: str) -> Draft:
    draft = rows.open_draft(conn, scope)
    for version in versions:
        draft = with_version(draft, version)
    rows.save(conn, draft)
    rows.card_arrived(conn, rows.next_card(conn, draft.id), 77)
    return draft


def test_draft_and_what_waits_follow_their_chat_without_old_messages(
    conn: sqlite3.Connection,
) -> None:
    topic = Scope("telegram", OLD.chat_id, 5)
    for scope in (OLD, topic):
        begin(conn, scope, "a", "b")
        rows.add_job(conn, scope, NewJob("text", "c", message_id=9))

    move_chat(conn, OLD, new=NEW)

    for scope in (NEW, Scope("telegram", NEW.chat_id, 5)):
        moved = rows.find(conn, scope)
        assert moved is not None
        assert (moved.versions, moved.card_id) == (("a", "b"), None)
        (job,) = rows.jobs(conn, scope)
        assert (job.new.text, job.new.message_id) == ("c", None)
    assert rows.find(conn, OLD) is rows.find(conn, topic) is None
    assert {scope.chat for scope in rows.busy_scopes(conn)} == {NEW}
    assert rows.scope_of_card(conn, MessageRef("telegram", OLD.chat_id, 77)) is None


def test_draft_that_was_begun_in_the_new_chat_stays(conn: sqlite3.Connection) -> None:
    begin(conn, OLD, "old")
    newer = begin(conn, NEW, "new")

    move_chat(conn, OLD, new=NEW)

    found = rows.find(conn, NEW)
    assert found is not None
    assert (found.id, found.versions, found.card_id) == (newer.id, ("new",), 77)
    assert rows.find(conn, OLD) is None


def test_versions_that_were_reverted_are_gone(conn: sqlite3.Connection) -> None:
    draft = begin(conn, OLD, "a", "b", "c")
    rows.save(conn, Draft(draft.id, OLD, ("a",), step=4))
    found = rows.find(conn, OLD)
    assert found is not None
    assert (found.versions, found.step) == (("a",), 4)
