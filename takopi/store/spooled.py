"""Which files beside the database belong to a row of it; all others may go."""

from __future__ import annotations

import sqlite3


def named(conn: sqlite3.Connection) -> frozenset[str]:
    """The files that are still to be sent, or that the page still offers."""
    rows = conn.execute(
        "SELECT spooled FROM outbox WHERE state IN ('waiting', 'sending', 'parked')"
        " AND spooled IS NOT NULL"
        " UNION SELECT spooled FROM web_messages WHERE spooled IS NOT NULL"
        " UNION SELECT spooled FROM web_uploads WHERE spooled IS NOT NULL"
    )
    return frozenset(row["spooled"] for row in rows)
