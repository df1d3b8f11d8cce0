"""A disk that has no room for one kind of thing: SQLite's own page limit stands for it."""

from __future__ import annotations

import sqlite3


def leave_no_room(conn: sqlite3.Connection, table: str) -> None:
    """Let nothing more fit into one table."""
    conn.execute("CREATE TABLE large (content)")
    conn.execute(
        # ruff: ignore[hardcoded-sql-expression] a name of ours
        f"CREATE TRIGGER large BEFORE INSERT ON {table}"
        " BEGIN INSERT INTO large VALUES (zeroblob(1000000)); END"
    )
    pages = conn.execute("PRAGMA page_count").fetchone()[0]
    conn.execute(f"PRAGMA max_page_count = {pages + 20}")


def make_room(conn: sqlite3.Connection) -> None:
    """Let everything fit again."""
    conn.execute("DROP TRIGGER large")
