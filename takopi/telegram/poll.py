"""Receives for as long as it runs: an update is in the store before Telegram may forget it.

Who is not let in leaves no trace but a line in the log. Failures of the network, of the server
and of the disk are waited out; only a token that Telegram does not know ends the poller.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import structlog
import trio

from takopi.core.errors import (
    BadToken,
    Conflict,
    StoreFailed,
    StoreUnfit,
    TakopiError,
    TryLater,
    Unreachable,
)
from takopi.core.ids import Scope
from takopi.core.messages import Arrival, Incoming
from takopi.kit.clock import now_ms
from takopi.kit.supervise import Backoff
from takopi.routing.authorize import Envelope, Strangers
from takopi.store import inbox, outbox
from takopi.store.database import Database
from takopi.telegram.api import Api
from takopi.telegram.hooks import Hooks
from takopi.telegram.parse import NAME, Bot, chat_regained, envelope, parse, update_id
from takopi.telegram.times import Times

log = structlog.get_logger("takopi.telegram")


@dataclass(frozen=True, slots=True)
class _Batch:
    """What of one answer is kept: the updates that mean something, and where to go on."""

    updates: tuple[inbox.Update, ...]
    regained: tuple[int, ...]
    next_offset: int


@dataclass(frozen=True, slots=True)
class _Kept:
    fresh: tuple[inbox.Received, ...]
    unparked: tuple[Scope, ...]


class Poller:
    """The one receiver of a bot. `unparked` hears of chats that can be written to again."""

    def __init__(
        self,
        api: Api,
        db: Database,
        *,
        allows: Callable[[Envelope], bool],
        deliver: trio.MemorySendChannel[Arrival],
        unparked: Callable[[Scope], None],
        hooks: Hooks,
        times: Times,
    ) -> None:
        self.last_poll_ms: int | None = None
        self._api = api
        self._db = db
        self._allows = allows
        self._deliver = deliver
        self._unparked = unparked
        self._hooks = hooks
        self._times = times
        self._source = f"{NAME}:{api.bot_id}"
        self._known: Bot | None = None
        self._bot: Bot | None = None
        self._offset: int | None = None
        self._strangers = Strangers()
        self._told_of_store = False
        self._last_conflict = -math.inf

    @property
    def bot_name(self) -> str | None:
        """The bot's username, once the server has told it."""
        return None if self._known is None else self._known.name

    def reread(self, row: inbox.Received) -> Incoming | None:
        """What an update says that is in the store; None before the first contact."""
        return None if self._known is None else self._admitted(row, self._known)

    async def run(self) -> None:
        """Receive until cancelled. `BadToken` and `StoreUnfit` come out: waiting mends neither."""
        backoff = Backoff()
        while True:
            try:
                failure = await self._attempt()
            except (BadToken, StoreUnfit):
                raise
            except TakopiError as error:
                failure = error
                pause_s = self._pause_s(error, backoff)
                log.warning("poll.failed", why=error.what, pause_s=round(pause_s, 1))
            else:
                backoff.reset()
                pause_s = 0.0
            self._hooks.on_poll_end(failure)
            await self._pause(pause_s, failure)

    async def _pause(self, pause_s: float, failure: TakopiError | None) -> None:
        """Wait, and say now and then that this is all: a server may ask for hours."""
        while pause_s > self._times.sign_s:
            await trio.sleep(self._times.sign_s)
            pause_s -= self._times.sign_s
            self._hooks.on_poll_end(failure)
        await trio.sleep(pause_s)

    async def _attempt(self) -> TakopiError | None:
        """Receive once; a failure that is returned, not raised, needs no pause."""
        if self._bot is None:
            await self._begin()
            return None
        times, began = self._times, trio.current_time()
        answer: Sequence[msgspec.Raw] | None = None
        with trio.move_on_after(times.poll_s + times.answer_s):
            answer = await self._api.get_updates(self._offset, timeout_s=times.poll_s)
        if answer is None:
            # The connection went with the request.
            log.warning("poll.abandoned", after_s=times.poll_s + times.answer_s)
            return Unreachable("no answer in time", maybe_applied=True)
        if answer:
            await self._take(answer, self._bot)
        else:
            # A server that does not hold the request must not be asked without end.
            await trio.sleep_until(began + times.empty_s)
        self.last_poll_ms = now_ms()
        return None

    async def _begin(self) -> None:
        """Learn the bot's name, without which no mention is seen, and go on where we ended."""
        try:
            with trio.fail_after(self._times.answer_s):
                me = await self._api.get_me()
        except trio.TooSlowError:
            raise Unreachable("no answer in time", maybe_applied=False) from None
        bot = Bot(self._api.bot_id, me.username)
        self._offset, pending = await self._db.read(
            lambda conn: (inbox.offset(conn, self._source), inbox.pending(conn))
        )
        log.info("bot.known", bot=bot.name, pending=len(pending))
        # Whoever handles what is pending may already ask for it.
        self._known = bot
        await self._hand_over([row for row in pending if row.source == self._source], bot)
        self._bot = bot

    async def _take(self, answer: Sequence[msgspec.Raw], bot: Bot) -> None:
        batch = self._sort(answer, bot)
        kept = await self._db.write(lambda conn: _keep(conn, self._source, batch))
        self._offset = batch.next_offset
        self._told_of_store = False
        for chat in kept.unparked:
            self._unparked(chat)
        try:
            await self._hand_over(kept.fresh, bot)
        except StoreFailed:
            # Telegram will not send the rest again: it comes from the store, as at a start.
            self._bot = None
            raise

    def _sort(self, answer: Sequence[msgspec.Raw], bot: Bot) -> _Batch:
        updates: list[inbox.Update] = []
        regained: list[int] = []
        last: int | None = None
        for update in answer:
            number = update_id(update)
            if number is None:
                continue
            last = number if last is None else max(last, number)
            if (chat_id := chat_regained(update)) is not None:
                regained.append(chat_id)
            signed = envelope(update)
            if signed is None or signed.chat_id is None:
                continue
            if not self._allows(signed):
                if self._strangers.is_new(signed):
                    log.warning("stranger.ignored", sender=signed.sender_id, chat=signed.chat_id)
                continue
            if parse(update, bot) is not None:
                updates.append(inbox.Update(number, signed.chat_id, bytes(update)))
        if last is None:
            raise Unreachable("the answer holds no update that has a number", maybe_applied=False)
        return _Batch(tuple(updates), tuple(regained), last + 1)

    async def _hand_over(self, received: Sequence[inbox.Received], bot: Bot) -> None:
        for row in received:
            what = self._admitted(row, bot)
            if what is not None:
                await self._deliver.send(Arrival(row.id, what))
                continue
            # It was let in before, by another config or another takopi.
            await self._db.write(lambda conn, row=row: _refuse(conn, row))

    def _admitted(self, row: inbox.Received, bot: Bot) -> Incoming | None:
        signed = envelope(row.payload)
        if signed is None or not self._allows(signed):
            return None
        return parse(row.payload, bot)

    def _pause_s(self, error: TakopiError, backoff: Backoff) -> float:
        now = trio.current_time()
        match error:
            case Conflict():
                if now - self._last_conflict >= self._times.calm_s:
                    log.error("poll.conflict", why=error.what, way_out=error.way_out)
                    self._hooks.on_trouble(error)
                self._last_conflict = now
                return self._times.conflict_s
            case StoreFailed():
                if not self._told_of_store:
                    self._told_of_store = True
                    log.error("store.failed", why=error.what, way_out=error.way_out)
                    self._hooks.on_trouble(error)
            case TryLater():
                return error.retry_after_s
            case _:
                pass
        return backoff.pause_s()


def _keep(conn: sqlite3.Connection, source: str, batch: _Batch) -> _Kept:
    fresh = inbox.record(
        conn, source, updates=batch.updates, next_offset=batch.next_offset, now_ms=now_ms()
    )
    # Whoever speaks in a chat, or let the bot in again, shows that it can be written to.
    chats = dict.fromkeys([*batch.regained, *(update.chat_id for update in batch.updates)])
    scopes = [Scope(NAME, chat_id) for chat_id in chats]
    return _Kept(fresh, tuple(scope for scope in scopes if outbox.unpark(conn, scope)))


def _refuse(conn: sqlite3.Connection, row: inbox.Received) -> None:
    if inbox.take(conn, row.id):
        inbox.settle(conn, row.id, "refused", now_ms=now_ms())
