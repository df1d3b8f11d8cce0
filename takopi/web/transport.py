"""The page as a transport: one private chat, in a browser on this machine."""

from __future__ import annotations

import io
import math
import os
import socket
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import BinaryIO, Protocol

import msgspec
import trio

from takopi.config.loaded import Config
from takopi.core.errors import Refused, Unfit
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Arrival, Incoming, Press
from takopi.core.outgoing import Card, Outgoing
from takopi.files.spool import Spool
from takopi.kit.clock import now_ms
from takopi.store import inbox
from takopi.store.database import Database
from takopi.store.inbox import Received
from takopi.web import inbound, uploads
from takopi.web.chat import NAME, SCOPE, ref
from takopi.web.feed import Feed
from takopi.web.outbox import Outbox
from takopi.web.server import Command, Site, serve_site

HOST = "127.0.0.1"
BACKLOG = 100


class _Named(Protocol):
    """A line of a menu, whoever made it."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...


class WebTransport:
    """The chat of the page. It speaks once `outbox.serve` runs, and listens while `listen` does.

    Arrivals come out of `incoming`. They are in the store already: one that nobody took when the
    process ends comes out again after the next start.
    """

    name = NAME
    bot_name = "takopi"
    max_units = 16_000

    def __init__(
        self,
        db: Database,
        *,
        listener: socket.socket,
        token: str,
        spool: Spool,
        on_sent: Callable[[str, MessageRef], None] = lambda _key, _ref: None,
        takes_files: Callable[[], bool] = lambda: False,
    ) -> None:
        # Bounded by how fast one person clicks; and what is in the store must get through at once.
        send, self.incoming = trio.open_memory_channel[Arrival](math.inf)
        self.address = f"http://{HOST}:{listener.getsockname()[1]}"
        self.url = f"{self.address}/?token={token}"
        self._db = db
        self._listener = listener
        self._token = token
        self._spool = spool
        self._deliver = send
        self._feed = Feed()
        self.outbox = Outbox(db, on_change=self._feed.note_change, on_sent=on_sent)
        self._menu: tuple[Command, ...] = ()
        self._takes_files = takes_files

    async def listen(self) -> None:
        """Answer browsers until cancelled; what nobody took before the last end comes first."""
        await self._hand_over_pending()
        site = Site(
            db=self._db,
            feed=self._feed,
            spool=self._spool,
            token=self._token,
            port=self._listener.getsockname()[1],
            deliver=self._deliver.send_nowait,
            menu=lambda: self._menu,
            takes_files=self._takes_files,
        )
        await serve_site(site, os.dup(self._listener.fileno()))

    @staticmethod
    def reread(received: Received) -> Incoming | None:
        """What an update of the inbox says."""
        return inbound.read(received)

    async def fetch(self, file_id: str) -> BinaryIO:
        """A file that a person handed to the page, for the caller to close."""
        file = await self._db.read(lambda conn: uploads.find(conn, int(file_id)))
        gone = Refused("the page no longer has this file", way_out="send it again")
        if file is None:
            raise gone
        if isinstance(file.data, bytes):
            return io.BytesIO(file.data)
        try:
            opening = partial(self._spool.open, file.data, shown=file.name)
            return await trio.to_thread.run_sync(opening)
        except Refused:
            raise gone from None

    async def send(self, scope: Scope, message: Outgoing) -> MessageRef:
        """Show a message once, behind everything that was said before."""
        _check(scope)
        return ref(await self.outbox.send(message))

    def edit(self, ref: MessageRef, card: Card) -> None:
        """Let the message read so; a newer edit replaces one that waits."""
        self.outbox.edit(ref.message_id, card)

    def clear_buttons(self, ref: MessageRef) -> None:
        """Leave the message nothing to press, whatever it says."""
        self.outbox.clear_buttons(ref.message_id)

    def delete(self, ref: MessageRef) -> None:
        """Remove the message, and forget edits of it that wait."""
        self.outbox.remove(ref.message_id)

    def acknowledge(self, press: Press, text: str = "", *, alert: bool = False) -> None:
        """Answer a press on the pages that are open."""
        self._feed.tell("toast", {"key": press.id, "text": text, "alert": alert})

    def wake(self, chat: Scope) -> None:
        """Something for the page is new in the store's outbox."""
        _check(chat)
        self.outbox.wake()

    def show_menu(self, items: Sequence[_Named]) -> None:
        """Let the page complete these commands."""
        self._menu = tuple(Command(item.name, item.description) for item in items)
        self._feed.tell("commands", msgspec.to_builtins(self._menu))

    @staticmethod
    async def settle(chat: Scope) -> None:  # ruff: ignore[unused-static-method-argument] a Transport
        """What is shown on the page is known in the same moment."""
        await trio.lowlevel.checkpoint()

    @staticmethod
    async def create_topic(chat: Scope, name: str) -> Scope:
        """The page has no topics."""
        raise Refused(
            f"the page has no topics, so {name!r} was not made in chat {chat.chat_id}",
            way_out="use a Telegram group with topics",
        )

    async def _hand_over_pending(self) -> None:
        for row in await self._db.read(inbound.pending):
            what = inbound.read(row)
            if what is not None:
                self._deliver.send_nowait(Arrival(row.id, what))
                continue
            await self._db.write(partial(_refuse, row=row))


@asynccontextmanager
async def open_web(
    config: Config,
    db: Database,
    *,
    token: str,
    spool: Spool,
    on_sent: Callable[[str, MessageRef], None] = lambda _key, _ref: None,
    takes_files: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[WebTransport, None]:
    """The page of the config, for as long as the block lasts; nothing runs until it is started.

    Its address is taken from here on, and known: `url` opens it. `Unfit` if the port is not free.
    `on_sent` hears which message became of what was in the store's outbox under a key;
    `takes_files` says whether files can be handed to it.
    """
    with _bound(config.web.port) as listener:
        transport = WebTransport(
            db,
            listener=listener,
            token=token,
            spool=spool,
            on_sent=on_sent,
            takes_files=takes_files,
        )
        with transport.incoming:
            yield transport


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A restart must not wait for the connections of the last process to be forgotten.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise Unfit(
            f"the page cannot listen on {HOST}:{port}: {error.strerror}",
            way_out="`takopi config set web.port 0` takes any free port",
        ) from error
    return listener


def _check(scope: Scope) -> None:
    if scope.chat != SCOPE:
        raise Refused(f"the page has no chat {scope.chat_id}")


def _refuse(conn: sqlite3.Connection, *, row: Received) -> None:
    if inbox.take(conn, row.id):
        inbox.settle(conn, row.id, "refused", now_ms=now_ms())
