"""What is said after a start: what could not be finished before, and what was set aside."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from takopi.app.notices import tell_home
from takopi.core.outgoing import Outgoing
from takopi.kit.clock import now_ms
from takopi.present.cards import notice
from takopi.runs.recover import Recovered, chat_of
from takopi.runs.workshop import Workshop, put
from takopi.store import inbox


async def tell_of_start(shop: Workshop, recovered: Recovered, *, set_aside: Path | None) -> None:
    """One notice for each thing that a person must know of."""

    def change(conn: sqlite3.Connection) -> None:
        for received in recovered.unfinished:
            scope = chat_of(received)
            inbox.settle(conn, received.id, "reported", now_ms=now_ms())
            if scope.transport in shop.transports:
                text = "takopi was stopped while it handled a message. Send it again if it matters."
                put(
                    conn,
                    scope,
                    Outgoing(notice(text)),
                    kind="notice",
                    key=f"unfinished:{received.id}",
                )

    await shop.db.write(change)
    for received in recovered.unfinished:
        scope = chat_of(received)
        if scope.transport in shop.transports:
            shop.transport(scope).wake(scope)
    if set_aside is not None:
        text = (
            f"The database was damaged: it is set aside as `{set_aside.name}`, and a new one begun."
        )
        await tell_home(shop, notice(text))
