"""Messages that waited too long for takopi are asked about instead of run."""

from __future__ import annotations

import sqlite3

from takopi.app.desk import Desk
from takopi.core.ids import InboxId
from takopi.core.messages import IncomingMessage
from takopi.core.outgoing import Outgoing
from takopi.kit.clock import now_ms
from takopi.present.cards import notice
from takopi.present.numbers import ago
from takopi.runs.buttons import inbox_button
from takopi.runs.workshop import put
from takopi.store import inbox


def is_stale(message: IncomingMessage, stale_s: float) -> bool:
    """Whether nobody may expect this message to be run any more."""
    return message.sent_ms is not None and now_ms() - message.sent_ms > stale_s * 1000


async def ask_about(desk: Desk, inbox_id: InboxId, message: IncomingMessage) -> None:
    """Ask whether the message still counts, once."""
    age_s = (now_ms() - (message.sent_ms or 0)) / 1000
    card = notice(
        f"You wrote this {ago(age_s)}, and takopi has only just seen it. Shall it run now?",
        buttons=((inbox_button("run", inbox_id), inbox_button("drop", inbox_id)),),
    )

    def change(conn: sqlite3.Connection) -> None:
        if inbox.take(conn, inbox_id):
            put(
                conn,
                message.scope,
                Outgoing(card, reply_to=message.message_id),
                kind="notice",
                key=f"stale:{inbox_id}",
            )
            inbox.settle(conn, inbox_id, "reported", now_ms=now_ms())

    await desk.shop.db.write(change)
    desk.shop.transport(message.scope).wake(message.scope.chat)
