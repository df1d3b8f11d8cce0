"""Where each arrival goes: a press, a command, an answer to an ask, or a run; each at most once.

Arrivals of one chat are handled in order, chats side by side, and presses as they come. While a
voice note is written down, or a file fetched, only the prompts behind it in its scope wait for it,
and for the rest of a command nobody does. What goes wrong with one is told in its chat and ends
there.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

import structlog
import trio

from takopi.app.desk import Call, Command, Desk, Rest
from takopi.app.drafting import is_spoken
from takopi.app.gather import Gathering, make_whole, reword_whole
from takopi.app.stale import ask_about, is_stale
from takopi.core.errors import StoreFailed, TakopiError
from takopi.core.ids import InboxId, Scope
from takopi.core.messages import Arrival, Edited, IncomingMessage, Press
from takopi.drafts.service import is_drafting
from takopi.kit.clock import now_ms
from takopi.kit.lanes import Lanes
from takopi.present.cards import notice, refusal
from takopi.routing.directives import skip_directives
from takopi.store import inbox, scopes
from takopi.store.inbox import Settlement
from takopi.telegram.buttons import Registry

MAX_HANDLERS = 64
STORE_PAUSE_S = 2.0
TELL_S = 3600.0
"""How long an error waits for the store; what was not told by then is told after a start."""

DIRECTED = frozenset({"plan", "session"})
"""Commands that take the directives of a prompt, after their name or in front of it."""

_COMMAND = re.compile(r"\s*/([a-z0-9_]+)(?:@(\w+))?(?:\s+|$)", re.IGNORECASE)

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.app")


class _HalfDoneError(Exception):
    """The store failed inside what was taken: that is not done again, and settled once told."""

    def __init__(self, why: StoreFailed) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class _Aside:
    """What goes on beside the lanes of the chats, each in lanes of its own."""

    prompts: Lanes[Scope, Arrival]
    rests: Lanes[Scope, tuple[Arrival, Rest]]


@dataclass(frozen=True, slots=True)
class Router:
    """Handles arrivals. `presses` knows which feature a button belongs to."""

    desk: Desk
    commands: Mapping[str, Command]
    presses: Registry

    async def serve(self, incoming: trio.MemoryReceiveChannel[Arrival]) -> None:
        """Handle what comes in until cancelled."""
        async with trio.open_nursery() as nursery:
            start = partial(self._handle, self._start)
            aside = _Aside(
                Lanes[Scope, Arrival](nursery, start, max_active=MAX_HANDLERS),
                Lanes[Scope, tuple[Arrival, Rest]](nursery, self._go_on, max_active=MAX_HANDLERS),
            )
            route = partial(self._handle, partial(self._route, aside))
            lanes = Lanes[object, Arrival](nursery, route, max_active=MAX_HANDLERS)
            gathering = Gathering(
                nursery,
                gather_s=lambda: self.desk.config.limits.gather_s,
                stands_alone=lambda message: self._call(message) is not None,
                pass_on=lambda arrival: lanes.put(_lane(arrival), arrival),
            )
            async for arrival in incoming:
                gathering.put(arrival)

    async def _go_on(self, job: tuple[Arrival, Rest]) -> None:
        """Do what is left of a command, which is over then."""
        arrival, rest = job
        await self._handle(lambda _: self._settled(arrival, rest), arrival)

    async def _handle(
        self, handle: Callable[[Arrival], Awaitable[object]], arrival: Arrival
    ) -> None:
        structlog.contextvars.bind_contextvars(inbox=arrival.inbox_id)
        while True:
            try:
                await handle(arrival)
                return
            except StoreFailed as error:
                # Nothing of it was written, so it can be handled again as if it came now.
                log.warning("arrival.delayed", why=error.what)
            except _HalfDoneError as error:
                await self._tell(arrival, error.why)
                return
            except TakopiError as error:
                await self._tell(arrival, error)
                return
            except Exception as error:  # one message must not end the others
                log.exception("arrival.failed")
                await self._tell(arrival, error)
                return
            await trio.sleep(STORE_PAUSE_S)

    async def _route(self, aside: _Aside, arrival: Arrival) -> None:
        match arrival.what:
            case Press():
                await self._press(arrival, arrival.what)
            case Edited():
                await self._once(arrival, lambda: self._edited(arrival.what))
            case IncomingMessage():
                whole = await make_whole(self.desk, arrival, arrival.what)
                if whole is None:
                    # Each is on its own, and what is wrong with one is no matter of the others.
                    for part in arrival.parts:
                        await self._handle(partial(self._route, aside), part)
                elif isinstance(whole.what, IncomingMessage):
                    await self._route_message(aside, whole, whole.what)

    async def _route_message(
        self, aside: _Aside, arrival: Arrival, message: IncomingMessage
    ) -> None:
        if await self._is_prompt(aside, arrival, message):
            await self._prompt(aside.prompts, arrival, message)

    async def _press(self, arrival: Arrival, press: Press) -> None:
        transport = self.desk.shop.transport(press.scope)
        handle = self.presses.route(press)
        if handle is None:
            transport.acknowledge(press, "This button is no longer of use.")
            await self._settle(arrival.inbox_id, "refused")
            return
        await self._once(arrival, handle)

    async def _edited(self, edited: object) -> None:
        if isinstance(edited, Edited):
            whole = await reword_whole(self.desk, edited.message)
            await self.desk.requests.replace_prompt(whole)

    async def _prompt(
        self, prompts: Lanes[Scope, Arrival], arrival: Arrival, message: IncomingMessage
    ) -> None:
        takes_time = is_spoken(message) or bool(message.documents)
        if takes_time or prompts.is_busy(message.scope):
            prompts.put(message.scope, arrival)
        else:
            await self._start(arrival)

    async def _start(self, arrival: Arrival) -> None:
        if isinstance(arrival.what, IncomingMessage):
            await self.desk.intake.start(arrival.what, arrival.inbox_id)

    async def _is_prompt(self, aside: _Aside, arrival: Arrival, message: IncomingMessage) -> bool:
        """Whether the message is to be run; any other is handled on return, or goes on aside."""
        inbox_id, call = arrival.inbox_id, self._call(message)
        if call is None and not await self._is_for_us(message):
            await self._settle(inbox_id, "refused")
        elif call is not None:
            await self.desk.intake.leave_files(message, inbox_id)
            command = self.commands[call.name]
            rest = await self._once(arrival, lambda: command(self.desk, call))
            if rest is not None:
                aside.rests.put(message.scope.chat, (arrival, rest))
        elif (asked := await self.desk.asks.find(message)) is not None:
            await self.desk.intake.leave_files(message, inbox_id)
            await self._once(arrival, partial(self.desk.asks.typed, asked, message))
        elif await self._is_answer(arrival, message):
            pass
        elif await self.desk.drafts.takes(message):
            await self.desk.intake.leave_files(message, inbox_id)
            await self.desk.drafts.add(message, inbox_id)
        elif is_stale(message, self.desk.config.limits.stale_s):
            await ask_about(self.desk, inbox_id, message)
        else:
            return True
        return False

    async def _is_answer(self, arrival: Arrival, message: IncomingMessage) -> bool:
        """Whether something asked for this text; then it is handled on return.

        What asks cannot end before it has the text.
        """
        for asking in filter(None, (self.desk.turns.chat, self.desk.interviews)):
            async with asking.taking(message) as take:
                if take is not None:
                    await self.desk.intake.leave_files(message, arrival.inbox_id)
                    await self._once(arrival, take)
                    return True
        return False

    def _call(self, message: IncomingMessage) -> Call | None:
        """The message as a command, if it is one of ours."""
        found = _COMMAND.match(message.text)
        if found is None or found[1].lower() not in self.commands:
            return self._call_after_directives(message)
        own = self.desk.shop.transport(message.scope).bot_name
        if found[2] is not None and (own is None or found[2].lower() != own.lower()):
            return None
        return Call(found[1].lower(), message.text[found.end() :].strip(), message)

    def _call_after_directives(self, message: IncomingMessage) -> Call | None:
        """The message as a command that takes directives, which may also stand in front of it."""
        bot_name = self.desk.shop.transport(message.scope).bot_name
        front = skip_directives(
            message.text,
            engines=[engine.id for engine in self.desk.shop.engines],
            projects=self.desk.config.projects,
            bot_name=bot_name,
        )
        found = _COMMAND.match(front.prompt) if front.words else None
        if found is None or found[1].lower() not in DIRECTED:
            return None
        if found[2] is not None and found[2].lower() != (bot_name or "").lower():
            return None
        args = " ".join((*front.words, front.prompt[found.end() :].strip()))
        return Call(found[1].lower(), args.strip(), message)

    async def _is_for_us(self, message: IncomingMessage) -> bool:
        """In a group only what speaks to the bot, unless it was told to answer everything."""
        if message.to_bot or message.chat_type == "private":
            return True
        if self._begins_with_directive(message.text):
            return True
        scope = message.scope
        own, chat = await self.desk.shop.db.read(
            lambda conn: (scopes.get(conn, scope), scopes.get(conn, scope.chat))
        )
        return is_drafting(own) or (own.trigger_mode or chat.trigger_mode) == "all"

    def _begins_with_directive(self, text: str) -> bool:
        found = _COMMAND.match(text)
        if found is None:
            return False
        engines = {engine.id.lower() for engine in self.desk.shop.engines}
        aliases = {alias.lower() for alias in self.desk.config.projects}
        return found[1].lower() in engines | aliases

    async def _once(
        self, arrival: Arrival, handle: Callable[[], Awaitable[Rest | None]]
    ) -> Rest | None:
        """Take the arrival, handle it, settle it; nothing happens if somebody has taken it."""
        if not await self.desk.shop.db.write(lambda conn: inbox.take(conn, arrival.inbox_id)):
            return None
        return await self._settled(arrival, handle)

    async def _settled(
        self, arrival: Arrival, handle: Callable[[], Awaitable[Rest | None]]
    ) -> Rest | None:
        """Handle what was taken, and settle it, unless something is left to be done.

        What takopi stops in the middle is not settled, and so told of after the next start.
        """
        outcome: Settlement | None = None
        try:
            rest = await handle()
            if rest is None:
                outcome = "done"
        except StoreFailed as error:
            raise _HalfDoneError(error) from error
        except TakopiError:
            outcome = "refused"
            raise
        except Exception:
            outcome = "reported"
            raise
        finally:
            if outcome is not None:
                with trio.move_on_after(STORE_PAUSE_S, shield=True):
                    await self._finish(arrival.inbox_id, outcome)
        return rest

    async def _finish(self, inbox_id: InboxId, outcome: Settlement) -> None:
        try:
            await self.desk.shop.db.write(
                lambda conn: inbox.settle(conn, inbox_id, outcome, now_ms=now_ms())
            )
        except TakopiError as error:
            log.warning("arrival.not_settled", why=error.what)

    async def _settle(self, inbox_id: InboxId, outcome: Settlement) -> None:
        """Let an arrival be over, unless it is."""

        def change(conn: sqlite3.Connection) -> None:
            inbox.take(conn, inbox_id)
            known = inbox.find(conn, inbox_id)
            if known is not None and known.state == "taken":
                inbox.settle(conn, inbox_id, outcome, now_ms=now_ms())

        await self.desk.shop.db.write(change)

    async def _tell(self, arrival: Arrival, error: Exception) -> None:
        """Say what went wrong where it was asked for, and let the arrival be over.

        It is said as soon as the store takes it.
        """
        if isinstance(arrival.what, Press):
            text = error.what if isinstance(error, TakopiError) else "That failed."
            transport = self.desk.shop.transport(arrival.what.scope)
            transport.acknowledge(arrival.what, text[:200], alert=True)
        with trio.move_on_after(TELL_S):
            while True:
                try:
                    await self._tell_in_chat(arrival, error)
                    return
                except StoreFailed as failed:
                    log.warning("arrival.not_told", why=failed.what)
                await trio.sleep(STORE_PAUSE_S)

    async def _tell_in_chat(self, arrival: Arrival, error: Exception) -> None:
        if isinstance(error, TakopiError):
            card = refusal(error)
        else:
            card = notice(f"takopi has a bug: {type(error).__name__}. Its log says more.")
        # A press that was answered before it failed shows no second answer on its button.
        if not isinstance(arrival.what, Press) or isinstance(error, StoreFailed):
            scope, reply_to = _place(arrival)
            with_key = f"refused:{arrival.inbox_id}"
            await self.desk.shop.tell(scope, card, reply_to=reply_to, key=with_key)
        await self._settle(arrival.inbox_id, "refused")


def _lane(arrival: Arrival) -> object:
    what = arrival.what
    if isinstance(what, Press):
        return what.ref
    message = what.message if isinstance(what, Edited) else what
    return message.scope.chat


def _place(arrival: Arrival) -> tuple[Scope, int | None]:
    what = arrival.what
    if isinstance(what, Press):
        return what.scope, what.message_id
    message = what.message if isinstance(what, Edited) else what
    return message.scope, message.message_id
