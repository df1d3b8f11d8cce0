"""Answers, questions and notices leave in the order they came, chat by chat, at least once.

`waiting → sending → sent | failed`, and back to `waiting` when a send must be tried again. A chat
that cannot be reached has all its open sends `parked`, so nothing overtakes them.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal, NewType

from takopi.core.errors import Refused
from takopi.core.ids import MessageRef, RunId, Scope
from takopi.store import drafts, threads

SendId = NewType("SendId", int)
"""A send in the outbox."""

SendKind = Literal["answer", "question", "notice"]
SendState = Literal["waiting", "sending", "sent", "parked", "failed"]

KEPT_BYTES = 64 * 1024
PARKED_MAX_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Send:
    """Something that must arrive. With `maybe_sent`, it may have arrived before."""

    id: SendId
    scope: Scope
    kind: SendKind
    payload: bytes
    run_id: RunId | None
    key: str | None
    state: SendState
    attempts: int
    maybe_sent: bool
    not_before_ms: int
    created_ms: int
    spooled: str | None


@dataclass(frozen=True, slots=True)
class Due:
    """A chat that has something to send, and since or from when."""

    chat: Scope
    not_before_ms: int


def add(
    conn: sqlite3.Connection,
    scope: Scope,
    *,
    kind: SendKind,
    payload: bytes,
    now_ms: int,
    run_id: RunId | None = None,
    dedupe_key: str | None = None,
    spooled: str | None = None,
) -> SendId:
    """Put something at the end of the chat's queue; a `dedupe_key` that is known adds nothing.

    `spooled` is the file on the disk that it needs until it has been sent.
    """
    if dedupe_key is not None:
        row = conn.execute("SELECT id FROM outbox WHERE dedupe_key = ?", (dedupe_key,)).fetchone()
        if row is not None:
            return SendId(row["id"])
    head = _head(conn, scope)
    parked = head is not None and head["state"] == "parked"
    row = conn.execute(
        "INSERT INTO outbox (transport, chat_id, topic_id, kind, payload, run_id, dedupe_key,"
        " state, parked_ms, created_ms, spooled)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            scope.transport,
            scope.chat_id,
            scope.topic_id,
            kind,
            payload,
            run_id,
            dedupe_key,
            "parked" if parked else "waiting",
            now_ms if parked else None,
            now_ms,
            spooled,
        ),
    ).fetchone()
    return SendId(row["id"])


def take_next(conn: sqlite3.Connection, chat: Scope, *, now_ms: int) -> Send | None:
    """The chat's oldest open send, now `sending`; None while it must wait or is on its way."""
    head = _head(conn, chat)
    if head is None or head["state"] != "waiting" or head["not_before_ms"] > now_ms:
        return None
    row = conn.execute(
        "UPDATE outbox SET state = 'sending', attempts = attempts + 1 WHERE id = ? RETURNING *",
        (head["id"],),
    ).fetchone()
    return _send(row)


def due(conn: sqlite3.Connection) -> tuple[Due, ...]:
    """Every chat whose next send waits, the soonest first."""
    rows = conn.execute(
        "SELECT transport, chat_id, not_before_ms FROM outbox AS own"
        " WHERE state IN ('waiting', 'sending', 'parked') AND state = 'waiting'"
        " AND id = (SELECT min(id) FROM outbox AS other WHERE other.transport = own.transport"
        " AND other.chat_id = own.chat_id AND other.state IN ('waiting', 'sending', 'parked'))"
        " ORDER BY not_before_ms, id"
    )
    return tuple(Due(Scope(row["transport"], row["chat_id"]), row["not_before_ms"]) for row in rows)


def confirm(conn: sqlite3.Connection, send_id: SendId, *, message_id: int, now_ms: int) -> None:
    """It arrived as this message, which belongs to its run or its draft from now on."""
    row = _leave_sending(conn, send_id, "sent")
    conn.execute(
        "UPDATE outbox SET message_id = ?, ended_ms = ? WHERE id = ?",
        (message_id, now_ms, send_id),
    )
    if row["run_id"] is not None:
        ref = MessageRef(row["transport"], row["chat_id"], message_id)
        threads.map_message(conn, ref, run_id=RunId(row["run_id"]))
    elif len(row["payload"]) > KEPT_BYTES:
        # Only what belongs to a run is ever asked for again.
        conn.execute("UPDATE outbox SET payload = x'' WHERE id = ?", (send_id,))
    if row["dedupe_key"] is not None:
        drafts.card_arrived(conn, row["dedupe_key"], message_id)


def key_of(conn: sqlite3.Connection, run_id: RunId, *, message_id: int) -> str | None:
    """The `dedupe_key` of what arrived as this message of the run."""
    row = conn.execute(
        "SELECT dedupe_key FROM outbox WHERE run_id = ? AND message_id = ?", (run_id, message_id)
    ).fetchone()
    return None if row is None else row["dedupe_key"]


def payload_of(conn: sqlite3.Connection, run_id: RunId, *, message_id: int) -> bytes | None:
    """What arrived as this message of the run."""
    row = conn.execute(
        "SELECT payload FROM outbox WHERE run_id = ? AND message_id = ?", (run_id, message_id)
    ).fetchone()
    return None if row is None else row["payload"]


def key_at(conn: sqlite3.Connection, ref: MessageRef) -> str | None:
    """The `dedupe_key` of what arrived as this message, as far as it is known."""
    row = conn.execute(
        "SELECT dedupe_key FROM outbox WHERE transport = ? AND chat_id = ? AND message_id = ?",
        (ref.transport, ref.chat_id, ref.message_id),
    ).fetchone()
    return None if row is None else row["dedupe_key"]


def may_be(conn: sqlite3.Connection, key: str, ref: MessageRef) -> bool:
    """Whether a message that is not known may be what was put under this key.

    It is on its way and nobody here has heard that it arrived, or it was sent twice and this is
    the first of them.
    """
    row = conn.execute(
        "SELECT 1 FROM outbox WHERE dedupe_key = ?2 AND"
        " (state = 'sending' OR maybe_sent = 1 AND ifnull(message_id, ?1 + 1) > ?1)",
        (ref.message_id, key),
    ).fetchone()
    return row is not None


def knows(conn: sqlite3.Connection, key: str) -> bool:
    """Whether something was put under this `dedupe_key` and not closed since."""
    row = conn.execute("SELECT 1 FROM outbox WHERE dedupe_key = ?", (key,)).fetchone()
    return row is not None


def is_open(conn: sqlite3.Connection, key: str) -> bool:
    """Whether what was put under this `dedupe_key` has yet to arrive."""
    row = conn.execute(
        "SELECT 1 FROM outbox WHERE dedupe_key = ? AND state IN ('waiting', 'sending', 'parked')",
        (key,),
    ).fetchone()
    return row is not None


def message_of(conn: sqlite3.Connection, key: str) -> int | None:
    """The message that what was put under this `dedupe_key` arrived as, as far as it is known."""
    row = conn.execute("SELECT message_id FROM outbox WHERE dedupe_key = ?", (key,)).fetchone()
    return None if row is None else row["message_id"]


def close_question(conn: sqlite3.Connection, key: str, *, now_ms: int) -> int | None:
    """Nobody needs an answer to this any more: returns the message it arrived as, if it did.

    One that has not been sent is not sent any more.
    """
    conn.execute(
        "UPDATE outbox SET state = 'failed', error = 'no longer needed', ended_ms = ?"
        " WHERE dedupe_key = ? AND state IN ('waiting', 'parked')",
        (now_ms, key),
    )
    row = conn.execute(
        "UPDATE outbox SET dedupe_key = 'closed:' || dedupe_key WHERE dedupe_key = ?"
        " RETURNING message_id",
        (key,),
    ).fetchone()
    return None if row is None else row["message_id"]


def open_questions(conn: sqlite3.Connection, run_id: RunId) -> tuple[tuple[str, bytes], ...]:
    """The keys and payloads of the run's questions that were not closed."""
    rows = conn.execute(
        "SELECT dedupe_key, payload FROM outbox WHERE run_id = ? AND kind = 'question'"
        " AND dedupe_key NOT LIKE 'closed:%' ORDER BY id",
        (run_id,),
    )
    return tuple((row["dedupe_key"], row["payload"]) for row in rows)


def put_back(
    conn: sqlite3.Connection, send_id: SendId, *, not_before_ms: int, maybe_sent: bool = False
) -> None:
    """It did not arrive, or nobody knows: it is the chat's next again, from `not_before_ms` on."""
    _leave_sending(conn, send_id, "waiting")
    conn.execute(
        "UPDATE outbox SET not_before_ms = ?, maybe_sent = max(maybe_sent, ?) WHERE id = ?",
        (not_before_ms, maybe_sent, send_id),
    )


def fail(conn: sqlite3.Connection, send_id: SendId, *, error: str, now_ms: int) -> None:
    """It will never arrive: the chat goes on with the next."""
    _leave_sending(conn, send_id, "failed")
    conn.execute("UPDATE outbox SET error = ?, ended_ms = ? WHERE id = ?", (error, now_ms, send_id))


def park(conn: sqlite3.Connection, chat: Scope, *, now_ms: int) -> int:
    """The chat cannot be reached: hold back all its open sends; returns how many."""
    return conn.execute(
        "UPDATE outbox SET state = 'parked', parked_ms = ?"
        " WHERE transport = ? AND chat_id = ?"
        " AND state IN ('waiting', 'sending', 'parked') AND state != 'parked'",
        (now_ms, chat.transport, chat.chat_id),
    ).rowcount


def unpark(conn: sqlite3.Connection, chat: Scope) -> int:
    """The chat is back: everything held back may go at once; returns how many."""
    return conn.execute(
        "UPDATE outbox SET state = 'waiting', parked_ms = NULL, not_before_ms = 0"
        " WHERE transport = ? AND chat_id = ?"
        # The partial index's own condition, so that it is used: this is asked of every message.
        " AND state IN ('waiting', 'sending', 'parked') AND state = 'parked'",
        (chat.transport, chat.chat_id),
    ).rowcount


def expire(conn: sqlite3.Connection, *, now_ms: int) -> tuple[Send, ...]:
    """Give up what has been parked for seven days; returns it."""
    rows = conn.execute(
        "UPDATE outbox SET state = 'failed', ended_ms = ?, error = 'the chat was gone for 7 days'"
        " WHERE state IN ('waiting', 'sending', 'parked') AND state = 'parked' AND parked_ms <= ?"
        " RETURNING *",
        (now_ms, now_ms - PARKED_MAX_MS),
    ).fetchall()
    # RETURNING promises no order.
    return tuple(sorted((_send(row) for row in rows), key=lambda send: send.id))


def recover(conn: sqlite3.Connection, *, transport: str | None = None) -> int:
    """After a crash: what was on its way waits again, and may have arrived; returns how many.

    A transport that is named asks for its own alone: another may be sending already.
    """
    return conn.execute(
        "UPDATE outbox SET state = 'waiting', maybe_sent = 1, not_before_ms = 0"
        " WHERE state IN ('waiting', 'sending', 'parked') AND state = 'sending'"
        " AND transport = ifnull(?, transport)",
        (transport,),
    ).rowcount


def _head(conn: sqlite3.Connection, chat: Scope) -> sqlite3.Row | None:
    return conn.execute(
        "SELECT * FROM outbox WHERE transport = ? AND chat_id = ?"
        " AND state IN ('waiting', 'sending', 'parked') ORDER BY id LIMIT 1",
        (chat.transport, chat.chat_id),
    ).fetchone()


def _leave_sending(conn: sqlite3.Connection, send_id: SendId, to: SendState) -> sqlite3.Row:
    row = conn.execute(
        "UPDATE outbox SET state = ? WHERE id = ? AND state = 'sending' RETURNING *",
        (to, send_id),
    ).fetchone()
    if row is None:
        known = conn.execute("SELECT state FROM outbox WHERE id = ?", (send_id,)).fetchone()
        state = "not known" if known is None else known["state"]
        raise Refused(f"send {send_id} is {state} and cannot become {to}")
    return row


def _send(row: sqlite3.Row) -> Send:
    return Send(
        id=SendId(row["id"]),
        scope=Scope(row["transport"], row["chat_id"], row["topic_id"]),
        kind=row["kind"],
        payload=row["payload"],
        run_id=row["run_id"],
        key=row["dedupe_key"],
        state=row["state"],
        attempts=row["attempts"],
        maybe_sent=bool(row["maybe_sent"]),
        not_before_ms=row["not_before_ms"],
        created_ms=row["created_ms"],
        spooled=row["spooled"],
    )
