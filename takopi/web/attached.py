"""How a file of the page stands in a row: small ones whole, others by their name on the disk."""

from __future__ import annotations

import sqlite3
from typing import TypeAlias

from takopi.core.outgoing import Attachment, Spooled

Columns: TypeAlias = tuple[bytes, str | None, int | None]
"""The content, or nothing and what lies on the disk instead."""


def columns(file: Attachment) -> Columns:
    """What its row holds of a file."""
    if isinstance(file.data, bytes):
        return file.data, None, None
    return b"", file.data.name, file.data.size_bytes


def attachment(row: sqlite3.Row) -> Attachment:
    """The file of a row with `name`, `data`, `spooled` and `spooled_bytes`."""
    if row["spooled"] is None:
        return Attachment(row["name"], row["data"])
    return Attachment(row["name"], Spooled(row["spooled"], row["spooled_bytes"]))
