"""One step at a time for one chat: the request, what it came to, and what follows from that.

A step that has begun is not cut short by cancellation, so that what the server did and what the
store knows go together; `stop` bounds how long that may take.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

import msgspec
import structlog
import trio

from takopi.core.errors import (
    ChatGone,
    ChatMoved,
    Refused,
    Rejected,
    StoreFailed,
    TakopiError,
    TryLater,
    Unreachable,
)
from takopi.core.ids import MessageRef, Scope
from takopi.core.outgoing import Card, Outgoing
from takopi.files.spool import Spool
from takopi.kit.clock import now_ms
from takopi.kit.supervise import Backoff
from takopi.present.cards import refusal
from takopi.store import outbox as rows
from takopi.store import upkeep
from takopi.store.database import Database
from takopi.telegram.api import Api
from takopi.telegram.chat_queue import STORED, ChatQueue, Direct, Edit, Removal, Step, Stored
from takopi.telegram.delivery import clear, deliver, show
from takopi.telegram.hooks import Hooks
from takopi.telegram.times import Times

SLOWEST_BYTES_PER_S = 100_000
KNOWN_CARDS = 128
"""So many messages are remembered as they read, so that no edit says the same again."""

# The time in a row is for the next start: while this process runs its own clock decides, which
# nobody sets back.
_ANY_TIME_MS = 2**53

T = TypeVar("T")
log = structlog.get_logger("takopi.telegram")


class Sender:
    """Performs the steps of all chats. `on_moved` takes over what waits for a chat that moved."""

    def __init__(
        self,
        api: Api,
        db: Database,
        *,
        spool: Spool,
        hooks: Hooks,
        times: Times,
        on_moved: Callable[[ChatQueue, Scope], None],
    ) -> None:
        self._api = api
        self._db = db
        self._spool = spool
        self._hooks = hooks
        self._times = times
        self._on_moved = on_moved
        self._cards: OrderedDict[MessageRef, Card] = OrderedDict()
        self._gone_topics: set[Scope] = set()
        self._on_their_way: set[trio.CancelScope] = set()
        self._stopped = False

    def stop(self) -> None:
        """Let what has begun end soon, and begin nothing that can wait for the next start."""
        self._stopped = True
        for scope in self._on_their_way:
            scope.deadline = trio.current_time() + self._times.stop_s

    async def perform(self, queue: ChatQueue, step: Step) -> None:
        """Do one step that was taken from the queue; what must be done again is back in it."""
        with self._to_the_end():
            match step:
                case Stored():
                    await self._send_stored(queue)
                case Direct():
                    await self._send_direct(queue, step)
                case Edit():
                    await self._edit(queue, step)
                case Removal():
                    await self._remove(queue, step)
        await trio.lowlevel.checkpoint_if_cancelled()

    async def _send_stored(self, queue: ChatQueue) -> None:
        row = await self._store(partial(rows.take_next, chat=queue.chat, now_ms=_ANY_TIME_MS))
        if row is None:
            return
        # There may be more behind it, and it may have to go again.
        queue.again(STORED)
        if self._stopped:
            await self._store(partial(rows.put_back, send_id=row.id, not_before_ms=0))
            return
        try:
            message = _read(row.payload)
            try:
                message_id = await self._deliver(
                    queue, row.scope, message=message, maybe_sent=row.maybe_sent
                )
            except Refused as error:
                # Its file is lost: whoever waits for it hears that in its place.
                log.error("file.lost", chat=queue.chat.chat_id, send=row.id)
                message = replace(message, card=refusal(error), attachment=None)
                message_id = await self._deliver(
                    queue, row.scope, message=message, maybe_sent=False
                )
        except TakopiError as error:
            await self._settle_stored(queue, row, error=error)
            await self._react(queue, error)
            return
        await self._store(
            partial(rows.confirm, send_id=row.id, message_id=message_id, now_ms=now_ms())
        )
        await self._drop_file(row)
        if row.key is not None:
            self._hooks.on_sent(
                row.key, MessageRef(queue.chat.transport, queue.chat.chat_id, message_id)
            )
        if message.removes is not None:
            queue.put_removal(message.removes)

    async def _settle_stored(self, queue: ChatQueue, row: rows.Send, *, error: TakopiError) -> None:
        where = log.bind(chat=queue.chat.chat_id, send=row.id, why=error.what)
        if isinstance(error, Rejected):
            where.error("send.failed")
            await self._store(partial(rows.fail, send_id=row.id, error=error.what, now_ms=now_ms()))
            await self._drop_file(row)
            return
        if isinstance(error, ChatGone):
            pause_s = 0.0
        elif isinstance(error, TryLater):
            pause_s = error.retry_after_s
        else:
            pause_s = queue.backoff.pause_s()
        where.warning("send.postponed", pause_s=pause_s)
        queue.hold_news(trio.current_time() + pause_s)
        await self._store(
            partial(
                rows.put_back,
                send_id=row.id,
                not_before_ms=now_ms() + int(pause_s * 1000),
                maybe_sent=isinstance(error, Unreachable) and error.maybe_applied,
            )
        )

    async def _send_direct(self, queue: ChatQueue, direct: Direct) -> None:
        direct.begun = True
        outcome: MessageRef | TakopiError | None = Unreachable(
            "takopi stopped while this was on its way", maybe_applied=True
        )
        try:
            message_id = await self._deliver(
                queue, direct.scope, message=direct.message, maybe_sent=False
            )
            outcome = MessageRef(queue.chat.transport, queue.chat.chat_id, message_id)
            if direct.message.removes is not None:
                queue.put_removal(direct.message.removes)
        except TakopiError as error:
            outcome = error
            if isinstance(error, TryLater | ChatMoved):
                # Nothing was sent, and it can still be: its turn has not come.
                outcome = None
                direct.begun = False
                queue.again(direct)
            await self._react(queue, error)
        finally:
            if outcome is not None:
                direct.settle(outcome)

    async def _edit(self, queue: ChatQueue, edit: Edit) -> None:
        ref = MessageRef(queue.chat.transport, queue.chat.chat_id, edit.message_id)
        known = self._cards.get(ref)
        card = edit.card
        if card is None and known is not None:
            card = replace(known, buttons=())
        if known is not None and known == card:
            return
        queue.spend(trio.current_time())
        # Until it is certain what the message reads, nothing is known of it.
        self._cards.pop(ref, None)
        if edit.card is None:
            request = partial(clear, self._api, ref.chat_id, message_id=ref.message_id)
        else:
            request = partial(
                show, self._api, ref.chat_id, message_id=ref.message_id, card=edit.card
            )
        try:
            await _request(request, within_s=self._times.request_s)
        except TakopiError as error:
            await self._try_again(queue, edit, error=error)
            lost = isinstance(error, Rejected) and error.reason == "not_found"
            if lost and edit.card is not None:
                self._hooks.on_edit_lost(ref, edit.card)
        else:
            queue.backoff.reset()
            if card is not None:
                self._remember(ref, card)

    async def _remove(self, queue: ChatQueue, removal: Removal) -> None:
        queue.spend(trio.current_time(), own=False)
        chat_id, message_id = queue.chat.chat_id, removal.message_id
        self._cards.pop(MessageRef(queue.chat.transport, chat_id, message_id), None)
        request = partial(self._api.delete_message, chat_id, message_id)
        try:
            await _request(request, within_s=self._times.request_s)
        except TakopiError as error:
            await self._try_again(queue, removal, error=error)
            if isinstance(error, Rejected):
                self._hooks.on_delete_refused(MessageRef(queue.chat.transport, chat_id, message_id))
        else:
            queue.backoff.reset()

    async def _try_again(
        self, queue: ChatQueue, step: Edit | Removal, *, error: TakopiError
    ) -> None:
        log.info("edit.failed", chat=queue.chat.chat_id, message=step.message_id, why=error.what)
        if isinstance(error, Rejected):
            return
        if isinstance(error, TryLater):
            queue.again(step)
        elif not isinstance(error, ChatGone):
            step.tries += 1
            queue.again(step)
            queue.hold_rest(trio.current_time() + queue.backoff.pause_s())
        await self._react(queue, error)

    async def _react(self, queue: ChatQueue, error: TakopiError) -> None:
        """What an error means for everything else that waits for the chat."""
        chat = queue.chat
        if isinstance(error, TryLater):
            queue.hold(trio.current_time() + error.retry_after_s)
        elif isinstance(error, ChatMoved):
            new = Scope(chat.transport, error.chat_id)
            log.warning("chat.moved", chat=chat.chat_id, to=new.chat_id)
            await self._store(partial(upkeep.move_chat, old=chat, new=new, readdress=_readdress))
            self._on_moved(queue, new)
            self._hooks.on_chat_moved(chat, new)
        elif isinstance(error, ChatGone):
            log.warning("chat.parked", chat=chat.chat_id, why=error.what)
            # Forgotten first: what is told to the chat from now on is not part of this.
            waiting = queue.clear()
            for direct in waiting:
                direct.settle(error)
            await self._store(partial(rows.park, chat=chat, now_ms=now_ms()))

    async def _deliver(
        self, queue: ChatQueue, scope: Scope, *, message: Outgoing, maybe_sent: bool
    ) -> int:
        queue.spend(trio.current_time())
        if scope in self._gone_topics:
            scope = scope.chat
        size = 0 if message.attachment is None else message.attachment.size_bytes
        request = partial(
            deliver,
            self._api,
            scope,
            message=message,
            maybe_sent=maybe_sent,
            on_topic_gone=self._lose_topic,
        )
        message_id = await _request(
            request, within_s=self._times.request_s + size / SLOWEST_BYTES_PER_S
        )
        queue.backoff.reset()
        if not maybe_sent:
            ref = MessageRef(scope.transport, scope.chat_id, message_id)
            self._remember(ref, message.card)
        return message_id

    async def _drop_file(self, row: rows.Send) -> None:
        if row.spooled is not None:
            await self._spool.sweep()

    async def _store(self, change: Callable[[sqlite3.Connection], T]) -> T:
        backoff = Backoff()
        while True:
            try:
                return await self._db.write(change)
            except StoreFailed as error:
                if self._stopped:
                    raise
                pause_s = backoff.pause_s()
                log.error("store.failed", why=error.what, pause_s=pause_s)
            await trio.sleep(pause_s)

    @contextmanager
    def _to_the_end(self) -> Generator[None, None, None]:
        with trio.CancelScope(shield=True) as scope:
            self._on_their_way.add(scope)
            try:
                yield
            except StoreFailed as error:
                # Only at a stop: what became of the row is asked again at the next start.
                log.warning("store.failed", why=error.what)
            finally:
                self._on_their_way.discard(scope)

    def _lose_topic(self, topic: Scope) -> None:
        if topic not in self._gone_topics:
            self._gone_topics.add(topic)
            log.warning("topic.gone", chat=topic.chat_id, topic=topic.topic_id)
            self._hooks.on_topic_gone(topic)

    def _remember(self, ref: MessageRef, card: Card) -> None:
        self._cards[ref] = card
        self._cards.move_to_end(ref)
        if len(self._cards) > KNOWN_CARDS:
            self._cards.popitem(last=False)


async def _request(call: Callable[[], Awaitable[T]], *, within_s: float) -> T:
    """Make one request; whatever happens in it is an error that the chat's queue can deal with."""
    try:
        with trio.fail_after(within_s):
            return await call()
    except trio.TooSlowError:
        raise Unreachable("no answer in time", maybe_applied=True) from None
    except TakopiError:
        raise
    except Exception as error:
        log.exception("request.crashed")
        raise Rejected(f"takopi made a mistake ({type(error).__name__})") from error


def _read(payload: bytes) -> Outgoing:
    try:
        return msgspec.msgpack.decode(payload, type=Outgoing)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected(f"what was stored cannot be read ({error})") from None


def _readdress(payload: bytes) -> bytes:
    # The numbers of messages mean other messages in the new chat, or none.
    try:
        message = _read(payload)
    except Rejected:
        return payload
    return msgspec.msgpack.encode(replace(message, reply_to=None, removes=None))
