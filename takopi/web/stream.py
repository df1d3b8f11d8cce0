"""Server-sent events: what changed since a page last looked, then what changes, without a gap."""

from __future__ import annotations

import sqlite3

import msgspec
import trio
from starlette.types import Receive, Send

from takopi.core.errors import StoreFailed
from takopi.store.database import Database
from takopi.web import messages
from takopi.web.feed import Feed, Listener

ALIVE_S = 15.0
"""A line goes out at least so often: a browser that hears nothing knows that we are gone."""
RETRY_MS = 1000
BATCH = 200


class Stream:
    """One page that listens. `after` is the number of the last change that it has seen."""

    def __init__(self, db: Database, feed: Feed, *, after: int) -> None:
        self._db = db
        self._feed = feed
        self._after = after

    async def run(self, receive: Receive, send: Send) -> None:
        """Send until the page leaves."""
        async with trio.open_nursery() as nursery:

            async def leave_with_page() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                nursery.cancel_scope.cancel()

            nursery.start_soon(leave_with_page)
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await _send(send, f"retry: {RETRY_MS}\n\n".encode())
            with self._feed.listen() as listener:
                try:
                    await self._tell(send, listener)
                except StoreFailed:
                    # The page comes back by itself, and asks for what it has not seen.
                    nursery.cancel_scope.cancel()

    async def _tell(self, send: Send, listener: Listener) -> None:
        if self._after > await self._db.read(messages.last_change):
            # It has seen what this store never held: another store, which it must forget.
            await _send(send, _event("reset", {}))
            self._after = 0
        while True:
            listener.wake = trio.Event()
            entries = await self._db.read(self._since)
            for entry in entries:
                await _send(send, _event("message", entry, number=entry.change))
                self._after = entry.change
            news = listener.take()
            for event, data in news:
                await _send(send, _event(event, data))
            if entries or news:
                continue
            with trio.move_on_after(ALIVE_S) as quiet:
                await listener.wake.wait()
            if quiet.cancelled_caught:
                await _send(send, b": takopi is here\n\n")

    def _since(self, conn: sqlite3.Connection) -> tuple[messages.Entry, ...]:
        return messages.since(conn, self._after, limit=BATCH)


async def _send(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def _event(name: str, data: object, *, number: int | None = None) -> bytes:
    # JSON has no bare line end in it, so one data line holds all of it.
    mark = b"" if number is None else b"id: %d\n" % number
    return b"%sevent: %s\ndata: %s\n\n" % (mark, name.encode(), msgspec.json.encode(data))
