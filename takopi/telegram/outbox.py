"""Everything that is said goes out chat by chat, in order, at the pace of its chat alone.

Each busy chat has one sender task. What is in the store is tried until it arrived; everything
else is best effort. At a stop, what is on its way has a moment to arrive, and the rest of what is
in the store stays there.
"""

from __future__ import annotations

import contextvars
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import structlog
import trio

from takopi.core.errors import TakopiError, TryLater, Unreachable
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Card, Outgoing
from takopi.files.spool import Spool
from takopi.kit.clock import now_ms
from takopi.kit.latest import Latest
from takopi.kit.supervise import Backoff, keep_alive
from takopi.store import outbox as rows
from takopi.store.database import Database
from takopi.telegram.api import Api, Command
from takopi.telegram.chat_queue import ChatQueue, Direct
from takopi.telegram.hooks import Hooks
from takopi.telegram.menu import MenuItem
from takopi.telegram.pace import Window
from takopi.telegram.parse import NAME
from takopi.telegram.sender import Sender
from takopi.telegram.times import Times

MAX_PAUSE_S = 3600.0
"""A pause from before a restart is not kept longer: the clock may have been set since."""

log = structlog.get_logger("takopi.telegram")


class Outbox:
    """All chats of one bot. `serve` runs the senders; before it, things only gather."""

    def __init__(self, api: Api, db: Database, *, spool: Spool, hooks: Hooks, times: Times) -> None:
        self._api = api
        self._db = db
        self._sender = Sender(api, db, spool=spool, hooks=hooks, times=times, on_moved=self._follow)
        self._times = times
        self._overall = Window()
        self._chats: dict[int, ChatQueue] = {}
        self._busy: set[ChatQueue] = set()
        self._quiet = trio.Event()
        self._ended = trio.Event()
        self._menu = Latest[tuple[MenuItem, ...]]()
        self._nursery: trio.Nursery | None = None
        self._context = contextvars.copy_context()
        self._stopped = False

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send until cancelled. What an earlier process left in the store goes first."""
        due = await self._db.write(_recover)
        # Senders start when somebody speaks, and must not inherit what that somebody is doing.
        self._context = contextvars.copy_context()
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._keep_menu)
                for chat in due:
                    pause_s = min(MAX_PAUSE_S, max(0, chat.not_before_ms - now_ms()) / 1000)
                    self._queue(chat.chat).hold_news(trio.current_time() + pause_s)
                    self._queue(chat.chat).put_stored()
                for queue in self._chats.values():
                    self._start(queue)
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    self._stop()
        finally:
            self._nursery = None
            self._ended.set()
            for queue in self._chats.values():
                for direct in queue.clear():
                    direct.settle(_stopping())

    async def close(self) -> None:
        """End `serve`, with a moment for what is on its way; what it uses may be closed then."""
        self._stop()
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
            await self._ended.wait()

    async def flush(self) -> None:
        """Return when nothing waits or is on its way; how long that may take is the caller's."""
        while self._busy:
            self._quiet = trio.Event()
            await self._quiet.wait()

    async def settle(self, chat: Scope) -> None:
        """Return when what is on its way to the chat now has come to something."""
        queue = self._chats.get(chat.chat_id)
        if queue is not None:
            await queue.settled.wait()

    async def send(self, scope: Scope, message: Outgoing) -> MessageRef:
        """Send once, in order, and say which message it became; nothing is in the store."""
        if self._stopped:
            raise _stopping()
        resume = partial(trio.lowlevel.reschedule, trio.lowlevel.current_task())
        direct = Direct(scope, message, resume)
        self._put(scope, lambda queue: queue.put_direct(direct))

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            if direct.begun or direct.queue is None:
                return trio.lowlevel.Abort.FAILED
            direct.queue.withdraw(direct)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        if isinstance(direct.outcome, MessageRef):
            return direct.outcome
        raise direct.outcome or _stopping()

    def edit(self, ref: MessageRef, card: Card) -> None:
        """Let a message read so; the newest of all that wait is the one that goes."""
        self._put(_chat(ref), lambda queue: queue.put_edit(ref.message_id, card))

    def clear_buttons(self, ref: MessageRef) -> None:
        """Take the buttons off a message."""
        self._put(_chat(ref), lambda queue: queue.put_clearing(ref.message_id))

    def delete(self, ref: MessageRef) -> None:
        """Remove a message."""
        self._put(_chat(ref), lambda queue: queue.put_removal(ref.message_id))

    def wake(self, chat: Scope) -> None:
        """There is something for this chat in the store."""
        self._put(chat, ChatQueue.put_stored)

    def acknowledge(self, press: Press, text: str, *, alert: bool) -> None:
        """Answer a press at once: it waits for no queue."""
        answer = partial(self._api.answer_callback_query, press.id, text, alert=alert)
        self._spawn(partial(_answer, answer, within_s=self._times.press_s))

    def show_menu(self, items: tuple[MenuItem, ...]) -> None:
        """Let the command menu read so."""
        self._menu.put(items)

    def _stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._sender.stop()

    def _queue(self, scope: Scope) -> ChatQueue:
        queue = self._chats.get(scope.chat_id)
        if queue is None:
            queue = self._chats[scope.chat_id] = ChatQueue(scope.chat, self._overall)
        return queue

    def _put(self, scope: Scope, put: Callable[[ChatQueue], None]) -> None:
        if not self._stopped:
            queue = self._queue(scope)
            put(queue)
            self._start(queue)

    def _start(self, queue: ChatQueue) -> None:
        if queue not in self._busy and self._spawn(partial(self._work, queue)):
            self._busy.add(queue)

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> bool:
        if self._nursery is None or self._stopped:
            return False
        self._context.run(self._nursery.start_soon, work)
        return True

    async def _work(self, queue: ChatQueue) -> None:
        try:
            while True:
                queue.changed = trio.Event()
                now = trio.current_time()
                step, at = queue.next(now)
                if step is None:
                    return
                if at > now:
                    with trio.move_on_at(at):
                        await queue.changed.wait()
                    continue
                queue.take(step)
                queue.settled = trio.Event()
                await self._sender.perform(queue, step)
                queue.settled.set()
        finally:
            queue.settled.set()
            self._busy.discard(queue)
            if not self._busy:
                self._quiet.set()

    def _follow(self, old: ChatQueue, new: Scope) -> None:
        queue = self._queue(new)
        queue.put_stored()
        for direct in old.clear():
            direct.scope = new
            direct.message = replace(direct.message, reply_to=None, removes=None)
            queue.put_direct(direct)
        self._start(queue)

    async def _keep_menu(self) -> None:
        shown: tuple[MenuItem, ...] | None = None
        async for items in self._menu:
            if items == shown:
                continue
            commands = [Command(item.name, item.description) for item in items]
            try:
                await keep_alive(
                    partial(self._set_menu, commands),
                    transient=(Unreachable, TryLater),
                    backoff=Backoff(),
                    on_retry=lambda error, pause_s: log.info(
                        "menu.postponed", why=str(error), pause_s=pause_s
                    ),
                )
                shown = items
            except TakopiError as error:
                log.warning("menu.failed", why=error.what)
            except Exception:
                log.exception("menu.crashed")

    async def _set_menu(self, commands: list[Command]) -> None:
        try:
            with trio.fail_after(self._times.request_s):
                await self._api.set_my_commands(commands)
        except trio.TooSlowError:
            raise Unreachable("no answer in time", maybe_applied=True) from None


async def _answer(answer: Callable[[], Awaitable[None]], *, within_s: float) -> None:
    """Try for as long as somebody looks at the button; one press must not end the rest."""
    try:
        with trio.move_on_after(within_s):
            await keep_alive(
                answer,
                transient=(Unreachable, TryLater),
                backoff=Backoff(first_s=0.2),
                on_retry=lambda _error, _pause_s: None,
            )
    except TakopiError as error:
        log.info("press.unanswered", why=error.what)
    except Exception:
        log.exception("press.crashed")


def _recover(conn: sqlite3.Connection) -> tuple[rows.Due, ...]:
    rows.recover(conn, transport=NAME)
    return tuple(due for due in rows.due(conn) if due.chat.transport == NAME)


def _chat(ref: MessageRef) -> Scope:
    return Scope(ref.transport, ref.chat_id)


def _stopping() -> Unreachable:
    return Unreachable("takopi is stopping", maybe_applied=False)
