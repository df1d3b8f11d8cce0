"""Open interviews: what a press, a text or a model changes is kept before anybody sees it.

Each interview has one step at a time. A step is decided by `machine`, written to its file, and only
then shown; every card has a key in the outbox, so that after a crash it is put there exactly if it
is missing. The model is asked outside of the steps, and its answer is a step like any other.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

import structlog
import trio
from msgspec.structs import replace

from takopi.core.errors import TakopiError, Unfit
from takopi.core.ids import ResumeToken, RunId, Scope
from takopi.core.messages import IncomingMessage, Press
from takopi.core.outgoing import Card, Outgoing
from takopi.interview.calls import Calls
from takopi.interview.cards import Cards
from takopi.interview.host import Host
from takopi.interview.machine import (
    TOO_LATE,
    Again,
    Batch,
    Event,
    Step,
    Typed,
    Unstarted,
    apply,
)
from takopi.interview.plan_file import bundled_prompt, save_brief
from takopi.interview.session import STAMP, Order, Session
from takopi.interview.signal import INSTRUCTION, read_signal
from takopi.interview.store import Damaged, Files
from takopi.interview.view import CANCELLED, STARTING, card_of, read_press
from takopi.kit.clock import now_ms
from takopi.oneshot.port import Oneshot
from takopi.present.cards import notice, refusal
from takopi.present.numbers import duration
from takopi.routing.answers import Take, may_answer
from takopi.store import ledger, outbox
from takopi.store.database import Database
from takopi.store.ledger import NewRun, Run

OVER = "This plan is closed."
FOREIGN = "These questions are for somebody else."
USELESS = "This button is no longer of use."

Key = tuple[Scope, int]
"""Where an interview is held, and with whom."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.interview")


class Interviews:
    """All open interviews. Calls to a model live in `nursery`, which is given to it."""

    def __init__(
        self, nursery: trio.Nursery, db: Database, *, files: Files, oneshot: Oneshot, host: Host
    ) -> None:
        self._db = db
        self._files = files
        self._host = host
        self._cards = Cards(db, host)
        self._open: dict[Key, Session] = {}
        self._locks: dict[Key, trio.Lock] = {}
        self._calls = Calls(nursery, oneshot, host=host, take=self._answered)
        self._changed = trio.Event()

    async def plan(self, order: Order, scope: Scope, *, user_id: int) -> None:
        """Begin an interview; where one is open, ask whether to go on with that."""
        async with self._lock((scope, user_id)):
            session = self._open.get((scope, user_id))
            if session is not None:
                await self._take(session, self._apply(session, Again(order)))
                return
            await self._begin(_new(order, scope, user_id))

    async def press(self, press: Press, what: str, *, answer: Callable[[str], None]) -> None:
        """A button was pressed; `answer` tells the person at once, before anything is done."""
        transport = self._host.transport(press.scope)
        event = read_press(what)
        if event is None or transport is None:
            answer(USELESS)
            return
        found = await self._find(press)
        if found is None:
            answer(OVER)
            transport.clear_buttons(press.ref)
            return
        if found.user_id != press.sender_id:
            answer(FOREIGN)
            return
        async with self._lock(_key(found)):
            session = self._open.get(_key(found))
            if session is None or session.card_key != found.card_key:
                answer(TOO_LATE)
                transport.clear_buttons(press.ref)
                return
            step = self._apply(session, event)
            answer(step.note)
            if step.effect == "execute":
                confirmed = replace(step.session, confirmed_message_id=press.message_id)
                step = Step(confirmed, step.effect)
            await self._take(session, step)

    @asynccontextmanager
    async def taking(self, message: IncomingMessage) -> AsyncGenerator[Take | None]:
        """What takes a message as an answer; nothing else happens to the interview meanwhile.

        None where none collects answers of this person here, and for a reply to a run.
        """
        key = (message.scope, message.sender_id or message.chat_id)
        if self._collecting(key) is not None and await may_answer(self._db, message):
            async with self._lock(key):
                if (session := self._collecting(key)) is not None:
                    yield partial(self._typed, session, message)
                    return
        yield None

    def _collecting(self, key: Key) -> Session | None:
        session = self._open.get(key)
        return session if session is not None and session.state == "COLLECTING" else None

    async def _typed(self, session: Session, message: IncomingMessage) -> None:
        step = self._apply(session, Typed(message.text))
        if step.note:
            await self._cards.say(session.scope, notice(step.note), reply_to=message.message_id)
        await self._take(session, step)

    def instruction(self, run: NewRun | Run, *, resumed: bool) -> str | None:
        """What a run is told about asking back; nothing, if its questions would lead in circles."""
        if not self._host.config().interview.auto or not run.interactive:
            return None
        return None if resumed and not self._host.takes_system(run.engine) else INSTRUCTION

    async def take(
        self, run: Run, answer: str, *, thread: ResumeToken | None
    ) -> tuple[str, Card] | None:
        """Begin the interview that an answer asks for; returns the key and the card to be sent.

        None for an answer that is to be shown, as every one is while the person has an interview.
        """
        user_id, transport = run.sender_id, self._host.transport(run.scope)
        batch = read_signal(answer, task=run.prompt)
        if batch is None or user_id is None or transport is None or not run.interactive:
            return None
        if not self._host.config().interview.auto:
            return None
        order = Order(
            task=run.prompt,
            engine=run.engine,
            model=run.model,
            thread=None if thread is None else thread.value,
            context=run.context,
            cwd=None if run.cwd is None else str(run.cwd),
        )
        session = replace(_new(order, run.scope, user_id), run_id=run.id)
        async with self._lock(_key(session)):
            if _key(session) in self._open:
                return None
            session = await self._keep(self._apply(session, batch).session)
        return session.card_key, card_of(session, max_units=transport.max_units)

    async def recover(self) -> None:
        """After a start: show what was kept and not shown, and ask the model again."""
        sessions, damaged = await trio.to_thread.run_sync(self._files.load)
        for each in damaged:
            await self._tell_damaged(each)
        for session in sessions:
            if self._host.transport(session.scope) is None:
                continue
            async with self._lock(_key(session)):
                await self._recover(session)

    async def serve(self) -> None:
        """End every interview that nobody has gone on with for too long."""
        while True:
            self._changed = trio.Event()
            ttl_s = self._host.config().interview.ttl_s
            due = {key: _age_s(each) for key, each in self._open.items()}
            for key in [key for key, age_s in due.items() if age_s >= ttl_s]:
                await self._expire(key, ttl_s)
            left = (ttl_s - age_s for age_s in due.values() if age_s < ttl_s)
            with trio.move_on_after(max(min(left, default=ttl_s), 0.0)):
                await self._changed.wait()

    async def _begin(self, session: Session, *, old: Session | None = None) -> None:
        session = await self._keep(session)
        if old is not None:
            self._calls.give_up(old)
        await self._show(session, old=old)
        self._calls.begin(session)

    async def _recover(self, session: Session) -> None:
        def look(conn: sqlite3.Connection) -> tuple[bool, bool]:
            is_over = outbox.knows(conn, session.end_key)
            if session.run_id is not None:
                # A run that died before its answer became this interview is told as interrupted.
                run = ledger.find(conn, RunId(session.run_id))
                is_over = is_over or run is None or run.state != "done"
            return is_over, outbox.knows(conn, session.card_key)

        is_over, is_shown = await self._db.read(look)
        if is_over:
            await self._remove(session)
            return
        self._open[_key(session)] = session
        if session.state == "EXECUTING":
            await self._execute(session)
            return
        if not is_shown:
            await self._show(session, old=None)
        if session.shown == "checking":
            self._calls.begin(session)

    async def _tell_damaged(self, damaged: Damaged) -> None:
        text = f"The file of an open plan was damaged. It is set aside as `{damaged.aside.name}`."
        log.warning("interview.damaged", file=damaged.aside.name)
        if self._host.transport(damaged.scope) is not None:
            key = f"iq:{damaged.aside.name}"
            await self._cards.say(damaged.scope, notice(f"{text} Send /plan again."), key=key)

    async def _expire(self, key: Key, ttl_s: float) -> None:
        try:
            async with self._lock(key):
                session = self._open.get(key)
                if session is not None and _age_s(session) >= ttl_s:
                    text = f"Planning has expired: nothing was answered for {duration(ttl_s)}."
                    await self._end(session, notice(f"{text} Send /plan again."))
        except TakopiError as error:
            log.warning("interview.not_expired", why=error.what)

    def _lock(self, key: Key) -> trio.Lock:
        return self._locks.setdefault(key, trio.Lock())

    def _apply(self, session: Session, event: Event) -> Step:
        return apply(session, event, max_rounds=self._host.config().interview.max_rounds)

    async def _find(self, press: Press) -> Session | None:
        """The session whose card was pressed, as it was when it showed that card."""
        shown = await self._cards.find(press.ref, tuple(self._open.values()))
        if shown is None:
            return None
        ours = (each for each in self._open.values() if each.session_id == shown.session_id)
        session = next(ours, None)
        return None if session is None else replace(session, revision=shown.revision)

    async def _take(self, old: Session, step: Step) -> None:
        """Do what a step came to."""
        match step.effect:
            case None:
                return
            case "cancel":
                await self._end(old, notice(CANCELLED))
                return
            case "restart":
                order = old.pending or old.order
                await self._begin(_new(order, old.scope, old.user_id), old=old)
                return
            case _:
                session = await self._keep(step.session)
        if step.effect == "execute":
            await self._cards.close(old)
            await self._execute(session)
        elif step.effect != "keep":
            await self._show(session, old=old, closed=step.closed)
        if step.effect == "ask":
            self._calls.begin(session)

    async def _keep(self, session: Session) -> Session:
        """Write the session down: from here on it survives a crash."""
        session = replace(session, updated_at=_now())
        await trio.to_thread.run_sync(self._files.save, session)
        self._open[_key(session)] = session
        self._changed.set()
        return session

    async def _show(self, session: Session, *, old: Session | None, closed: str = "") -> None:
        """Put the card where it will be sent, and let the one before it be over."""
        problem = ""
        if session.shown == "summary" and session.pending is None:
            session, problem = await self._save(session)
        max_units = self._cards.transport(session).max_units
        card = card_of(session, max_units=max_units, problem=problem)
        await self._cards.show(session, card, old=old, closed=closed)

    async def _save(self, session: Session) -> tuple[Session, str]:
        try:
            return await self._write_brief(session), ""
        except (TakopiError, OSError) as failure:
            error = _as_told(failure)
            return session, f"{error.what}. {error.way_out}" if error.way_out else error.what

    async def _write_brief(self, session: Session) -> Session:
        cwd = await self._host.find_cwd(session.order)
        branch = await self._host.find_branch(session.order, cwd)
        folder = self._host.config().interview.dir
        write = partial(save_brief, session, cwd, folder=folder, branch=branch)
        path = await trio.to_thread.run_sync(write)
        return await self._keep(replace(session, plan_path=path))

    async def _execute(self, session: Session) -> None:
        """Write the brief again and start the run; where that fails, back to the summary."""
        try:
            session = await self._write_brief(session)
            said = Outgoing(notice(STARTING), reply_to=session.confirmed_message_id)
            await self._host.start(session, bundled_prompt(session), said=said)
        except (TakopiError, OSError) as error:
            session = await self._keep(self._apply(session, Unstarted()).session)
            await self._cards.say(session.scope, refusal(_as_told(error)))
            await self._show(session, old=None)
            return
        await self._forget(session)

    async def _end(self, session: Session, card: Card) -> None:
        """Say the last word of an interview, then forget it."""
        await self._cards.end(session, card)
        self._calls.give_up(session)
        await self._forget(session)

    async def _forget(self, session: Session) -> None:
        await self._remove(session)
        self._open.pop(_key(session), None)
        self._changed.set()

    async def _remove(self, session: Session) -> None:
        """Its file goes, as its last word is in the store; what stays goes after a start."""
        try:
            await trio.to_thread.run_sync(self._files.remove, session)
        except OSError as error:
            log.warning("interview.not_removed", why=str(error))

    async def _answered(self, session: Session, answer: Batch | TakopiError) -> None:
        """The model has answered what it was asked for this session."""
        async with self._lock(_key(session)):
            self._calls.settle(session)
            current = self._open.get(_key(session))
            if current is None or current.session_id != session.session_id:
                return
            if isinstance(answer, Batch):
                await self._take(current, self._apply(current, answer))
            elif not session.questions:
                await self._end(current, refusal(answer))
            else:
                what = f"There are no follow-up questions: {answer.what}."
                await self._cards.say(session.scope, notice(what))
                await self._take(current, self._apply(current, Batch()))


def _new(order: Order, scope: Scope, user_id: int) -> Session:
    now = _now()
    return Session(
        session_id=str(uuid.uuid4()),
        chat_id=scope.chat_id,
        task=order.task,
        created_at=now,
        updated_at=now,
        context=order.context,
        thread_id=scope.topic_id,
        user_id=user_id,
        transport=scope.transport,
        order=order,
    )


def _as_told(error: TakopiError | OSError) -> TakopiError:
    if isinstance(error, TakopiError):
        return error
    return Unfit(
        f"{error.filename or 'a file'}: {error.strerror or error}",
        way_out="mend that, and press again",
    )


def _key(session: Session) -> Key:
    return session.scope, session.user_id


def _now() -> str:
    return datetime.now(UTC).strftime(STAMP)


def _age_s(session: Session) -> float:
    return now_ms() / 1000 - session.updated_s
