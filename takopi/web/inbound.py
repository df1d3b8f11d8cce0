"""What a person does on the page is in the inbox, in one transaction with what the page shows."""

from __future__ import annotations

import sqlite3
from typing import TypeAlias

import msgspec

from takopi.core.errors import Refused
from takopi.core.messages import Arrival, Incoming, IncomingMessage, Press
from takopi.core.outgoing import Card, Text
from takopi.store import inbox
from takopi.web import messages, uploads
from takopi.web.chat import NAME, OWNER_ID, SCOPE
from takopi.web.uploads import Upload

TOO_LATE = "This was decided already."
GONE = "The message that you reply to is gone."


class Written(msgspec.Struct, frozen=True, tag="written"):
    """A message, as the inbox keeps it."""

    message_id: int
    text: str
    reply_to: int | None
    reply_to_text: str | None
    sent_ms: int
    uploads: tuple[Upload, ...] = ()


class Pressed(msgspec.Struct, frozen=True, tag="pressed"):
    """A press, as the inbox keeps it; `key` is the page's own name for it."""

    message_id: int
    data: str
    key: str


_Deed: TypeAlias = Written | Pressed


def write(
    conn: sqlite3.Connection,
    text: str,
    *,
    reply_to: int | None,
    key: str,
    now_ms: int,
    files: tuple[int, ...] = (),
) -> tuple[int, Arrival | None]:
    """Keep a message; returns its number, and what is new. The same key again is not new."""
    known = messages.find_key(conn, key)
    if known is not None:
        return known, None
    replied = None
    if reply_to is not None:
        replied = messages.find(conn, reply_to)
        if replied is None:
            raise Refused(GONE, way_out="send it without the reply")
    uploaded = uploads.named(conn, files)
    message_id = messages.add(
        conn,
        "person",
        card=Card(Text(text)),
        now_ms=now_ms,
        reply_to=reply_to,
        key=key,
        uploads=uploaded,
    )
    said = None if replied is None else replied.text.text
    deed = Written(message_id, text, reply_to, said, now_ms, uploaded)
    return message_id, _record(conn, deed, now_ms=now_ms)


def press(
    conn: sqlite3.Connection, message_id: int, *, data: str, key: str, now_ms: int
) -> Arrival | None:
    """Keep a press of a button that the message has at this moment."""
    shown = messages.find(conn, message_id)
    if shown is None or all(button.data != data for row in shown.buttons for button in row):
        raise Refused(TOO_LATE)
    return _record(conn, Pressed(message_id, data, key), now_ms=now_ms)


def pending(conn: sqlite3.Connection) -> tuple[inbox.Received, ...]:
    """What the page's person did and nobody has taken."""
    return tuple(row for row in inbox.pending(conn) if row.source == NAME)


def read(received: inbox.Received) -> Incoming | None:
    """What an update of the inbox says; None if this takopi cannot read it."""
    try:
        deed = msgspec.msgpack.decode(received.payload, type=_Deed)
    except msgspec.DecodeError:
        return None
    if isinstance(deed, Pressed):
        return Press(deed.key, SCOPE, deed.message_id, OWNER_ID, deed.data)
    return IncomingMessage(
        transport=NAME,
        chat_id=OWNER_ID,
        message_id=deed.message_id,
        text=deed.text,
        reply_to_message_id=deed.reply_to,
        reply_to_text=deed.reply_to_text,
        sender_id=OWNER_ID,
        update_id=received.update_id,
        documents=tuple(upload.document for upload in deed.uploads),
        sent_ms=deed.sent_ms,
    )


def _record(conn: sqlite3.Connection, deed: _Deed, *, now_ms: int) -> Arrival | None:
    update = inbox.Update(messages.next_change(conn), OWNER_ID, msgspec.msgpack.encode(deed))
    for row in inbox.record(conn, NAME, updates=[update], next_offset=None, now_ms=now_ms):
        what = read(row)
        if what is not None:
            return Arrival(row.id, what)
    return None
