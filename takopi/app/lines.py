"""The transports that the config names, opened together and served as one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import trio

from takopi.config.loaded import Config
from takopi.core.errors import Refused
from takopi.core.ids import Scope
from takopi.core.messages import Arrival, Incoming
from takopi.core.ports import Transport
from takopi.files.spool import Spool
from takopi.kit.clock import now_ms
from takopi.routing.authorize import Envelope
from takopi.store.database import Database
from takopi.store.inbox import Received
from takopi.telegram.hooks import Hooks
from takopi.telegram.menu import MenuItem
from takopi.telegram.times import Times
from takopi.telegram.transport import TelegramTransport, open_telegram

if TYPE_CHECKING:
    from takopi.web.transport import WebTransport


@dataclass(frozen=True, slots=True)
class Lines:
    """What is open: the bot, the page, or both."""

    telegram: TelegramTransport | None
    web: WebTransport | None

    @property
    def transports(self) -> Mapping[str, Transport]:
        """All of them by name."""
        return {line.name: line for line in (self.telegram, self.web) if line is not None}

    @property
    def incoming(self) -> Sequence[trio.MemoryReceiveChannel[Arrival]]:
        """Where what people do comes out."""
        return [line.incoming for line in (self.telegram, self.web) if line is not None]

    async def start(self, services: trio.Nursery) -> None:
        """Let everything that is said go out, from tasks of `services`."""
        for line in (self.telegram, self.web):
            if line is not None:
                await services.start(line.outbox.serve)

    async def flush(self) -> None:
        """Return when everything that was said is on its way; the deadline is the caller's."""
        for line in (self.telegram, self.web):
            if line is not None:
                await line.outbox.flush()

    async def fetch(self, scope: Scope, file_id: str) -> BinaryIO:
        """A file that a person sent, for the caller to close; refused when too big or gone."""
        if self.web is not None and scope.transport == self.web.name:
            return await self.web.fetch(file_id)
        if self.telegram is None:
            raise Refused("the chat that this file came from is closed", way_out="send it again")
        return await self.telegram.download(file_id)

    def reread(self, received: Received) -> Incoming | None:
        """What an update of the inbox says, if it is still admitted."""
        if self.web is not None and received.source == self.web.name:
            return self.web.reread(received)
        return None if self.telegram is None else self.telegram.reread(received)

    def last_poll_s(self) -> Mapping[str, float | None]:
        """How long ago each server was last heard from; the page has none."""
        if self.telegram is None:
            return {}
        last_ms = self.telegram.last_poll_ms
        return {self.telegram.name: None if last_ms is None else (now_ms() - last_ms) / 1000}

    def show_menu(self, items: Sequence[MenuItem]) -> None:
        """Let people see what can be typed."""
        for line in (self.telegram, self.web):
            if line is not None:
                line.show_menu(items)


@asynccontextmanager
async def open_lines(
    config: Config,
    db: Database,
    *,
    spool: Spool,
    allows: Callable[[Envelope], bool],
    hooks: Hooks,
    times: Times | None,
    web_token: str,
    takes_files: Callable[[], bool],
) -> AsyncGenerator[Lines, None]:
    """The transports of the config, for as long as the block lasts; nothing runs yet."""
    async with AsyncExitStack() as stack:
        telegram = web = None
        if "web" in config.transports:
            # Its HTTP server is loaded only by those who use it.
            from takopi.web.transport import open_web

            web = await stack.enter_async_context(
                open_web(
                    config,
                    db,
                    token=web_token,
                    spool=spool,
                    on_sent=hooks.on_sent,
                    takes_files=takes_files,
                )
            )
        if "telegram" in config.transports:
            telegram = await stack.enter_async_context(
                open_telegram(config, db, allows=allows, spool=spool, hooks=hooks, times=times)
            )
        yield Lines(telegram, web)
