from __future__ import annotations

import sqlite3

from takopi.core.ids import EngineId, ResumeToken
from takopi.store import grants
from tests.store.rows import CLAUDE, TOKEN


def test_a_permission_holds_for_its_thread_and_its_words_alone(conn: sqlite3.Connection) -> None:
    grants.add(conn, TOKEN, "run ls")
    grants.add(conn, TOKEN, "run ls")
    assert grants.has(conn, TOKEN, "run ls")
    assert not grants.has(conn, TOKEN, "run rm")
    assert not grants.has(conn, ResumeToken(CLAUDE, "other"), "run ls")
    assert not grants.has(conn, ResumeToken(EngineId("pi"), TOKEN.value), "run ls")
