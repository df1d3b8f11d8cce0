"""Telegram as a transport: one bot, its two HTTP clients, what comes in and what goes out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import BinaryIO

import trio

from takopi.config.loaded import Config
from takopi.core.errors import Refused, Rejected
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Arrival, Incoming, Press
from takopi.core.outgoing import Card, Outgoing
from takopi.files.spool import Spool, append
from takopi.kit.http import open_http
from takopi.routing.authorize import Envelope
from takopi.store.database import Database
from takopi.store.inbox import Received
from takopi.telegram.api import Api
from takopi.telegram.hooks import Hooks
from takopi.telegram.menu import MenuItem
from takopi.telegram.outbox import Outbox
from takopi.telegram.parse import NAME
from takopi.telegram.poll import Poller
from takopi.telegram.render import MAX_UNITS, REPEATED
from takopi.telegram.times import Times

MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024
"""What the Bot API hands out at most."""

_WAITING_ARRIVALS = 100


class TelegramTransport:
    """One bot. It speaks once `outbox.serve` runs, and listens while `poll` does.

    Arrivals come out of `incoming`. They are in the store already: one that nobody took when the
    process ends comes out again after the next start.
    """

    name = NAME
    max_units = MAX_UNITS - len(REPEATED)

    def __init__(
        self,
        *,
        api: Api,
        outbox: Outbox,
        poller: Poller,
        incoming: trio.MemoryReceiveChannel[Arrival],
        spool: Spool,
    ) -> None:
        self.outbox = outbox
        self.incoming = incoming
        self._api = api
        self._poller = poller
        self._spool = spool

    @property
    def bot_name(self) -> str | None:
        """The bot's username; None until the first contact with the server."""
        return self._poller.bot_name

    @property
    def last_poll_ms(self) -> int | None:
        """When the server last handed over what it had, if it was only that there is nothing."""
        return self._poller.last_poll_ms

    def reread(self, received: Received) -> Incoming | None:
        """What an update of the inbox says, if it is still admitted."""
        return self._poller.reread(received)

    async def poll(self) -> None:
        """Receive until cancelled. `BadToken` and `StoreUnfit` come out: nothing mends them."""
        await self._poller.run()

    async def send(self, scope: Scope, message: Outgoing) -> MessageRef:
        """Send once, in order with everything else of the chat, and say which message it became.

        Being told to wait is not a failure: the caller's deadline says how long that may take.
        Cancellation comes out only while the request has not begun.
        """
        return await self.outbox.send(scope, message)

    def edit(self, ref: MessageRef, card: Card) -> None:
        """Let the message read so as soon as the chat's pace allows; a newer edit replaces it."""
        self.outbox.edit(ref, card)

    def clear_buttons(self, ref: MessageRef) -> None:
        """Leave the message nothing to press, whatever it says."""
        self.outbox.clear_buttons(ref)

    def delete(self, ref: MessageRef) -> None:
        """Remove the message, and forget edits of it that have not been sent."""
        self.outbox.delete(ref)

    def acknowledge(self, press: Press, text: str = "", *, alert: bool = False) -> None:
        """Answer a press at once, with a short text to be shown if there is one."""
        self.outbox.acknowledge(press, text, alert=alert)

    def wake(self, chat: Scope) -> None:
        """Something for this chat is new in the store's outbox."""
        self.outbox.wake(chat)

    async def settle(self, chat: Scope) -> None:
        """Return when it is known which message became of what is being sent to the chat now."""
        await self.outbox.settle(chat)

    def show_menu(self, items: Sequence[MenuItem]) -> None:
        """Let the chat's command menu read so; sent only if it read otherwise."""
        self.outbox.show_menu(tuple(items))

    async def create_topic(self, chat: Scope, name: str) -> Scope:
        """Make a topic; refused where the chat has none."""
        try:
            topic_id = await self._api.create_forum_topic(chat.chat_id, name)
        except Rejected as error:
            raise Refused(
                f"the topic was not made ({error.what})",
                way_out="use a group with topics, where the bot may manage them",
            ) from error
        return Scope(chat.transport, chat.chat_id, topic_id)

    async def is_chat_admin(self, chat_id: int, user_id: int) -> bool:
        """Whether somebody made a chat or administers it."""
        status = await self._api.get_chat_member(chat_id, user_id)
        return status in {"creator", "administrator"}

    async def download(self, file_id: str, *, max_bytes: int = MAX_DOWNLOAD_BYTES) -> BinaryIO:
        """A file that a person sent, for the caller to close; refused when too big or gone."""
        file = await trio.to_thread.run_sync(self._spool.scratch)
        try:
            await self._api.download(file_id, partial(append, file), max_bytes=max_bytes)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file


@asynccontextmanager
async def open_telegram(
    config: Config,
    db: Database,
    *,
    allows: Callable[[Envelope], bool],
    spool: Spool,
    hooks: Hooks | None = None,
    times: Times | None = None,
) -> AsyncGenerator[TelegramTransport, None]:
    """The bot of the config, for as long as the block lasts; nothing runs until it is started.

    `allows` is asked for every update, before anything of it but sender and chat is read.
    """
    hooks, times = hooks or Hooks(), times or Times()
    send, receive = trio.open_memory_channel[Arrival](_WAITING_ARRIVALS)
    # Long polling has its own client: in a shared pool, senders starve behind it.
    async with open_http(max_connections=2) as polling, open_http(max_connections=100) as sending:
        api = Api(sending, url=config.api_url, token=config.bot_token, spool=spool)
        outbox = Outbox(api, db, spool=spool, hooks=hooks, times=times)
        poller = Poller(
            Api(polling, url=config.api_url, token=config.bot_token),
            db,
            allows=allows,
            deliver=send,
            unparked=outbox.wake,
            hooks=hooks,
            times=times,
        )
        with send, receive:
            try:
                yield TelegramTransport(
                    api=api, outbox=outbox, poller=poller, incoming=receive, spool=spool
                )
            finally:
                with trio.move_on_after(times.stop_s + 1, shield=True):
                    await outbox.close()
