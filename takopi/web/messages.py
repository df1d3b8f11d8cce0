"""What the page shows is in the store: every change of a message has a number, in their order.

Whoever has seen everything up to one number asks for what is after it, and has seen everything
again; of a message that changed several times in between, only how it reads now.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Literal

import msgspec

from takopi.core.outgoing import Attachment, Button, Card, Outgoing, Text
from takopi.store import outbox
from takopi.web.attached import attachment as attachment_of
from takopi.web.attached import columns
from takopi.web.chat import SCOPE
from takopi.web.uploads import Upload

COUNTER = "web:changes"
"""Where the last number is kept, among the offsets."""

Author = Literal["person", "takopi"]

_EMPTY = Card(Text(""))
_ANY_TIME_MS = 2**53

# All but the content of a file, which is asked for by itself.
_SHOWN = (
    "SELECT id, change, author, card, reply_to, file_name, uploads, silent, edited, deleted,"
    " sent_ms FROM web_messages"
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One message as the page gets it. `change` is the number of its last change; a `silent` one
    shows the progress of a run; one that is `deleted` has no content any more. `uploads` are files
    of the person's."""

    id: int
    change: int
    author: Author
    text: Text
    buttons: tuple[tuple[Button, ...], ...]
    reply_to: int | None
    file: str | None
    uploads: tuple[Upload, ...]
    silent: bool
    edited: bool
    deleted: bool
    sent_ms: int


def next_change(conn: sqlite3.Connection) -> int:
    """A number that was never given before."""
    row = conn.execute(
        "INSERT INTO offsets VALUES (?, 1) ON CONFLICT (source)"
        " DO UPDATE SET next_offset = next_offset + 1 RETURNING next_offset",
        (COUNTER,),
    ).fetchone()
    return row["next_offset"]


def last_change(conn: sqlite3.Connection) -> int:
    """The number that was given last; 0 before the first."""
    row = conn.execute("SELECT next_offset FROM offsets WHERE source = ?", (COUNTER,)).fetchone()
    return 0 if row is None else row["next_offset"]


def add(
    conn: sqlite3.Connection,
    author: Author,
    *,
    card: Card,
    now_ms: int,
    reply_to: int | None = None,
    attachment: Attachment | None = None,
    silent: bool = False,
    key: str | None = None,
    uploads: tuple[Upload, ...] = (),
) -> int:
    """A new message at the end; returns its number. A `key` is the sender's own name for it."""
    row = conn.execute(
        "INSERT INTO web_messages"
        " (change, author, card, reply_to, file_name, silent, client_key, uploads, sent_ms,"
        " file, spooled, spooled_bytes)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            next_change(conn),
            author,
            msgspec.msgpack.encode(card),
            reply_to,
            None if attachment is None else attachment.name,
            silent,
            key,
            msgspec.msgpack.encode(uploads) if uploads else None,
            now_ms,
            *((None, None, None) if attachment is None else columns(attachment)),
        ),
    ).fetchone()
    return row["id"]


def send(conn: sqlite3.Connection, message: Outgoing, *, now_ms: int) -> int:
    """Let takopi say something, and what it takes the place of go; returns its number."""
    message_id = add(
        conn,
        "takopi",
        card=message.card,
        now_ms=now_ms,
        reply_to=message.reply_to,
        attachment=message.attachment,
        silent=message.silent,
    )
    if message.removes is not None:
        remove(conn, message.removes)
    return message_id


def send_stored(conn: sqlite3.Connection, *, now_ms: int) -> tuple[tuple[str | None, int], ...]:
    """Everything that waits in the outbox becomes messages; returns their keys and numbers.

    Taken, shown and confirmed in one transaction: each arrives exactly once.
    """
    sent: list[tuple[str | None, int]] = []
    while (row := outbox.take_next(conn, SCOPE, now_ms=_ANY_TIME_MS)) is not None:
        try:
            message = msgspec.msgpack.decode(row.payload, type=Outgoing)
        except msgspec.DecodeError as error:
            outbox.fail(conn, row.id, error=f"cannot be read: {error}", now_ms=now_ms)
            continue
        message_id = send(conn, message, now_ms=now_ms)
        outbox.confirm(conn, row.id, message_id=message_id, now_ms=now_ms)
        sent.append((row.key, message_id))
    return tuple(sent)


def edit(conn: sqlite3.Connection, message_id: int, card: Card | None) -> bool:
    """Let a message read so, or without a card lose its buttons; False if that changes nothing."""
    row = conn.execute(
        "SELECT card FROM web_messages WHERE id = ? AND NOT deleted", (message_id,)
    ).fetchone()
    if row is None:
        return False
    old = _card(row["card"])
    new = replace(old, buttons=()) if card is None else card
    if new == old:
        return False
    conn.execute(
        "UPDATE web_messages SET card = ?, edited = edited OR ?, change = ? WHERE id = ?",
        (msgspec.msgpack.encode(new), new.text != old.text, next_change(conn), message_id),
    )
    return True


def remove(conn: sqlite3.Connection, message_id: int) -> bool:
    """Take the content of a message away for good; False if there was none."""
    there = conn.execute(
        "SELECT 1 FROM web_messages WHERE id = ? AND NOT deleted", (message_id,)
    ).fetchone()
    if there is None:
        return False
    conn.execute(
        "UPDATE web_messages SET card = ?, file_name = NULL, file = NULL, spooled = NULL,"
        " spooled_bytes = NULL, uploads = NULL, deleted = 1, change = ? WHERE id = ?",
        (msgspec.msgpack.encode(_EMPTY), next_change(conn), message_id),
    )
    return True


def find(conn: sqlite3.Connection, message_id: int) -> Entry | None:
    """The message; None if there is none or it was deleted."""
    row = conn.execute(f"{_SHOWN} WHERE id = ? AND NOT deleted", (message_id,)).fetchone()
    return None if row is None else _entry(row)


def find_key(conn: sqlite3.Connection, key: str) -> int | None:
    """The number of the message that its sender named so."""
    row = conn.execute("SELECT id FROM web_messages WHERE client_key = ?", (key,)).fetchone()
    return None if row is None else row["id"]


def file_of(conn: sqlite3.Connection, message_id: int) -> Attachment | None:
    """The file that came with a message."""
    row = conn.execute(
        "SELECT file_name AS name, file AS data, spooled, spooled_bytes FROM web_messages"
        " WHERE id = ? AND file IS NOT NULL",
        (message_id,),
    ).fetchone()
    return None if row is None else attachment_of(row)


def since(conn: sqlite3.Connection, change: int, *, limit: int) -> tuple[Entry, ...]:
    """What changed after `change`, in the order it did."""
    rows = conn.execute(
        f"{_SHOWN} WHERE change > ? ORDER BY change LIMIT ?",
        (change, limit),
    )
    return tuple(_entry(row) for row in rows)


def before(conn: sqlite3.Connection, message_id: int | None, *, limit: int) -> tuple[Entry, ...]:
    """The last messages before one, or the last of all; the oldest first."""
    rows = conn.execute(
        f"{_SHOWN} WHERE NOT deleted AND id < ifnull(?, id + 1) ORDER BY id DESC LIMIT ?",
        (message_id, limit),
    ).fetchall()
    return tuple(_entry(row) for row in reversed(rows))


def _card(data: bytes) -> Card:
    return msgspec.msgpack.decode(data, type=Card)


def _uploads(data: bytes | None) -> tuple[Upload, ...]:
    return () if data is None else msgspec.msgpack.decode(data, type=tuple[Upload, ...])


def _entry(row: sqlite3.Row) -> Entry:
    card = _card(row["card"])
    return Entry(
        id=row["id"],
        change=row["change"],
        author=row["author"],
        text=card.text,
        buttons=card.buttons,
        reply_to=row["reply_to"],
        file=row["file_name"],
        uploads=_uploads(row["uploads"]),
        silent=bool(row["silent"]),
        edited=bool(row["edited"]),
        deleted=bool(row["deleted"]),
        sent_ms=row["sent_ms"],
    )
