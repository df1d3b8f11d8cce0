"""A message becomes a run: what is known is read, it is resolved, written down and scheduled."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

import trio

from takopi.core.errors import Refused
from takopi.core.ids import EngineId, InboxId, MessageRef, ResumeToken, RunId
from takopi.core.messages import IncomingMessage
from takopi.core.outgoing import Outgoing
from takopi.files.prompt import reworded
from takopi.kit.clock import now_ms
from takopi.routing.facts import Facts, named_threads, reply_ref
from takopi.routing.resolve import Resolved, resolve
from takopi.routing.resume import CONTINUE
from takopi.runs.schedule import Schedule
from takopi.runs.workshop import SETTLE_S, Workshop, put
from takopi.store import inbox, ledger, outbox, scopes, threads
from takopi.store.ledger import NewRun, Run

MINUTE_S = 60.0
FALLBACKS = ("claude", "codex", "opencode", "pi", "demo")


Amend: TypeAlias = Callable[[Resolved], Awaitable[Resolved]]
"""Adds to what a message asks for, once it is known what that is."""


class Requests:
    """The door to the schedule."""

    def __init__(self, shop: Workshop, schedule: Schedule) -> None:
        self._shop = shop
        self._schedule = schedule
        self._recent: dict[int, dict[InboxId, float]] = {}

    async def from_message(
        self, message: IncomingMessage, inbox_id: InboxId, *, amend: Amend | None = None
    ) -> None:
        """Start what the message asks for, once; a message that was taken starts nothing.

        `amend` may add to what it asks for, and take its time. `Refused` says why it cannot be
        had; the message is not taken then.
        """
        self._check_pace(message.sender_id, inbox_id)
        resolved = await self.resolve(message)
        self._check_room(resolved.thread, resolved.waits_for)
        if amend is not None:
            resolved = await amend(resolved)
        new = NewRun(
            scope=message.scope,
            prompt=resolved.prompt,
            engine=resolved.engine,
            model=resolved.model,
            thread=resolved.thread,
            context=resolved.context,
            cwd=resolved.cwd_hint,
            prompt_ref=message.ref,
            inbox_id=inbox_id,
            sender_id=message.sender_id,
        )
        run = await self._shop.db.write(lambda conn: _take(conn, new, inbox_id, message.joined))
        if run is not None:
            self._schedule.submit(
                run,
                waits_for=resolved.waits_for,
                session_cwd=resolved.session_cwd,
                notes=resolved.notes,
            )

    async def start(self, new: NewRun, *, key: str, said: Outgoing) -> None:
        """Start a run that a feature has put together, and say so; once for each `key`."""
        self._shop.engines.get(new.engine)
        self._check_room(new.thread)

        def change(conn: sqlite3.Connection) -> Run | None:
            if outbox.knows(conn, key):
                return None
            put(conn, new.scope, said, kind="notice", key=key)
            return ledger.add(conn, new, now_ms=now_ms())

        run = await self._shop.db.write(change)
        self._shop.transport(new.scope).wake(new.scope.chat)
        if run is not None:
            self._schedule.submit(run)

    async def resolve(self, message: IncomingMessage) -> Resolved:
        """What the message asks for, by everything that is known now."""
        config, engines = self._shop.config(), tuple(self._shop.engines)
        named = named_threads(message, engines)
        facts = await self._shop.db.read(lambda conn: _read_facts(conn, message, named))
        if reply_ref(message) is not None and facts.replied_run is None:
            await self._settle(message)
            facts = await self._shop.db.read(lambda conn: _read_facts(conn, message, named))
        lives = self._schedule.in_scope(message.scope)
        last = [live.run for live in lives if live.keeps_session]
        return resolve(
            replace(facts, session_run=last[-1] if last else None),
            config,
            engines=engines,
            bot_name=self._shop.transport(message.scope).bot_name,
            fallback_engine=self._fallback_engine(),
        )

    async def _settle(self, message: IncomingMessage) -> None:
        """A reply may be here before we know that what it replies to has arrived."""
        await self._shop.settle(message.scope.chat)
        with trio.move_on_after(SETTLE_S):
            for live in self._schedule.in_scope(message.scope):
                await live.face.settled.wait()

    async def replace_prompt(self, message: IncomingMessage) -> bool:
        """An edit of a message whose run has not begun: its new words count; else nothing does."""
        run_id = await self._shop.db.read(lambda conn: threads.run_of(conn, message.ref))
        live = None if run_id is None else self._schedule.find(run_id)
        if live is None or live.stage != "queued" or live.run.prompt_ref != message.ref:
            return False
        prompt = (await self.resolve(message)).prompt
        if message.documents:
            prompt = reworded(live.run.prompt, prompt)
        replaced = await self._shop.db.write(lambda conn: ledger.set_prompt(conn, live.id, prompt))
        if replaced:
            live.run = replace(live.run, prompt=prompt)
        return replaced

    async def again(self, run_id: RunId, *, how: str) -> Run:
        """Try an ended run again: `retry` its prompt, `resume` its thread, or start `afresh`."""
        run = await self._shop.db.write(lambda conn: _again(conn, run_id, how))
        self._schedule.submit(run)
        return run

    def _check_pace(self, sender_id: int | None, inbox_id: InboxId) -> None:
        """One message counts once, however often the disk lets it be tried."""
        most = self._shop.config().limits.user_per_min
        now = trio.current_time()
        known = self._recent.get(sender_id or 0, {})
        recent = {each: at for each, at in known.items() if at > now - MINUTE_S}
        self._recent[sender_id or 0] = recent
        if inbox_id not in recent and len(recent) >= most:
            raise Refused(
                f"that is more than {most} message{'s' * (most > 1)} in a minute",
                way_out="wait a little, or raise limits.user_per_min",
            )
        recent[inbox_id] = now

    def _check_room(self, thread: ResumeToken | None, waits_for: RunId | None = None) -> None:
        """What can begin at once is never too much; what would have to wait may be."""
        waiting = self._schedule.queued
        if waiting < self._shop.config().limits.max_queued:
            return
        if self._schedule.must_wait(thread, waits_for):
            already = {0: "no run may wait", 1: "1 run is waiting already"}
            raise Refused(
                already.get(waiting, f"{waiting} runs are waiting already"),
                way_out="wait for one to end, cancel one, or raise limits.max_queued",
            )

    def _fallback_engine(self) -> EngineId | None:
        """The engine of those who never chose one: the first that is installed."""
        known = (EngineId(name) for name in FALLBACKS)
        return next((engine for engine in known if self._shop.engines.is_installed(engine)), None)


def _read_facts(
    conn: sqlite3.Connection, message: IncomingMessage, named: tuple[ResumeToken, ...]
) -> Facts:
    ref = reply_ref(message)
    run_id = None if ref is None else threads.run_of(conn, ref)
    replied_thread = None if ref is None else threads.thread_of(conn, ref)
    choices = scopes.get(conn, message.scope)
    tokens = {token for token in (*named, replied_thread, choices.thread) if token is not None}
    known = {token: thread for token in tokens if (thread := threads.find(conn, token))}
    in_topic = message.thread_id is not None
    return Facts(
        message=message,
        replied_run=None if run_id is None else ledger.find(conn, run_id),
        replied_thread=replied_thread,
        threads=known,
        scope=choices,
        chat=scopes.get(conn, message.scope.chat) if in_topic else scopes.Choices(),
    )


def _take(
    conn: sqlite3.Connection, new: NewRun, inbox_id: InboxId, joined: tuple[int, ...]
) -> Run | None:
    """The message is taken, its run is queued and it is settled: all of it or nothing."""
    found = inbox.find(conn, inbox_id)
    # What waited too long was asked about: one run comes of it, however often it is pressed.
    if found is None or found.state not in {"new", "reported"}:
        return None
    was_new = inbox.take(conn, inbox_id)
    run = ledger.add(conn, new, now_ms=now_ms())
    for message_id in joined:
        ref = MessageRef(new.scope.transport, new.scope.chat_id, message_id)
        threads.map_message(conn, ref, run_id=run.id)
    if was_new:
        inbox.settle(conn, inbox_id, "done", now_ms=now_ms())
    return run


def _again(conn: sqlite3.Connection, run_id: RunId, how: str) -> Run:
    run = ledger.find(conn, run_id)
    if run is None:
        raise Refused("this run is too old to be tried again", way_out="send the message again")
    if run.state in {"queued", "running"}:
        raise Refused(f"run {run_id} has not ended")
    if (other := ledger.retried_as(conn, run_id)) is not None:
        raise Refused(f"this was tried again already, as run {other}")
    prompt, thread, cwd = run.prompt, run.thread, run.cwd
    if how == "resume":
        if thread is None:
            raise Refused("this run had no thread yet", way_out="press Retry")
        prompt = CONTINUE
    elif how == "afresh" or ledger.began_thread(conn, run):
        thread = None
        cwd = None if run.context is not None else cwd
    new = NewRun(
        scope=run.scope,
        prompt=prompt,
        engine=run.engine,
        model=run.model if thread is None or how != "resume" else None,
        thread=thread,
        context=run.context,
        cwd=cwd,
        prompt_ref=run.prompt_ref,
        retry_of=run_id,
        sender_id=run.sender_id,
        interactive=run.interactive,
    )
    return ledger.add(conn, new, now_ms=now_ms())
