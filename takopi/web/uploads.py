"""Files that a person hands to the page: kept in the store before a message names them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from takopi.core.errors import Refused
from takopi.core.messages import Document
from takopi.core.outgoing import Attachment
from takopi.web.attached import attachment, columns


class Upload(msgspec.Struct, frozen=True):
    """A file as messages name it."""

    id: int
    name: str
    size_bytes: int

    @property
    def document(self) -> Document:
        """The file as the rest of takopi sees it."""
        return Document(str(self.id), self.name, size_bytes=self.size_bytes)


def add(conn: sqlite3.Connection, file: Attachment, *, key: str, now_ms: int) -> int:
    """Keep a file; returns its number. The same key again is the same file."""
    row = conn.execute("SELECT id FROM web_uploads WHERE client_key = ?", (key,)).fetchone()
    if row is None:
        row = conn.execute(
            "INSERT INTO web_uploads (name, client_key, sent_ms, data, spooled, spooled_bytes)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            (file.name, key, now_ms, *columns(file)),
        ).fetchone()
    return row["id"]


def named(conn: sqlite3.Connection, numbers: Iterable[int]) -> tuple[Upload, ...]:
    """The files of these numbers; refused if one is not there."""
    found: list[Upload] = []
    for number in dict.fromkeys(numbers):
        row = conn.execute(
            "SELECT id, name, ifnull(spooled_bytes, length(data)) AS size FROM web_uploads"
            " WHERE id = ?",
            (number,),
        ).fetchone()
        if row is None:
            raise Refused("A file of this message is gone.", way_out="add it again")
        found.append(Upload(row["id"], row["name"], row["size"]))
    return tuple(found)


def find(conn: sqlite3.Connection, number: int) -> Attachment | None:
    """The file, None if it is gone."""
    row = conn.execute(
        "SELECT name, data, spooled, spooled_bytes FROM web_uploads WHERE id = ?", (number,)
    ).fetchone()
    return None if row is None else attachment(row)
