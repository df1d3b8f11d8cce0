"""What waits in a scope is done one by one, each against the version before it.

What cannot be put together stands still at the head of its queue until somebody decides; nothing
is lost and nothing overtakes. An answer that comes after a Reset finds its job gone, and changes
nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import structlog
import trio

from takopi.core.errors import Refused, StoreFailed, TakopiError, UnusableAnswer
from takopi.core.ids import Scope
from takopi.core.messages import Voice
from takopi.core.outgoing import Outgoing
from takopi.drafts.face import Faces, card_ref, end
from takopi.drafts.machine import MAX_TEXT_CHARS, State, appended, reverted, with_version
from takopi.drafts.ports import Ports
from takopi.drafts.tmux import Target, WindowGone, read_target
from takopi.drafts.view import sent_card
from takopi.present.cards import refusal
from takopi.store import drafts as rows
from takopi.store import scopes
from takopi.store.drafts import Draft, Job

STORE_PAUSE_S = 2.0
UNCERTAIN = (
    "takopi was stopped while it typed the draft into {label}: look there with `/screen` before you"
    " press Run again"
)

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.drafts")


@dataclass(slots=True)
class _Worker:
    again: bool = False
    call: trio.CancelScope = field(default_factory=trio.CancelScope)


class Queues:
    """The queues of all scopes. `on_gone` hears of a window that was to be typed into."""

    def __init__(
        self,
        nursery: trio.Nursery,
        ports: Ports,
        faces: Faces,
        *,
        on_gone: Callable[[Scope, Target], Awaitable[None]],
    ) -> None:
        self._nursery = nursery
        self._ports = ports
        self._faces = faces
        self._on_gone = on_gone
        self._workers: dict[Scope, _Worker] = {}

    def kick(self, scope: Scope) -> None:
        """Something waits in the scope."""
        worker = self._workers.get(scope)
        if worker is not None:
            worker.again = True
            return
        worker = self._workers[scope] = _Worker()
        self._nursery.start_soon(self._work, scope, worker)

    def stop(self, scope: Scope) -> None:
        """What is being done in the scope is of no use any more."""
        worker = self._workers.get(scope)
        if worker is not None:
            worker.again = True
            worker.call.cancel()

    async def _work(self, scope: Scope, worker: _Worker) -> None:
        try:
            while True:
                worker.again = False
                worker.call = trio.CancelScope()
                with worker.call:
                    if await self._do_next(scope):
                        continue
                if not worker.again:
                    return
        finally:
            del self._workers[scope]

    async def _do_next(self, scope: Scope) -> bool:
        """Do what is next in the scope; False if nothing can be done now."""
        try:
            state = await self._ports.db.write(lambda conn: _next(conn, scope))
            if state is None:
                return False
            await self._try(state, state.jobs[0])
        except StoreFailed as error:
            # Nothing of it was written, so it can be done again.
            log.warning("draft.delayed", why=error.what)
            await trio.sleep(STORE_PAUSE_S)
        return True

    async def _try(self, state: State, job: Job) -> None:
        try:
            await self._do(state, job)
        except StoreFailed:
            raise
        except Exception as error:  # one input must not end the others
            log.exception("draft.failed")
            why = f"takopi has a bug: {type(error).__name__}. Its log says more."
            await self._fail(job, state.draft.scope, why)

    async def _do(self, state: State, job: Job) -> None:
        match job.new.kind:
            case "voice":
                await self._hear(state.draft, job)
            case "text":
                await self._merge(state.draft, job)
            case "revert":
                await self._revert(state.draft, job)
            case "run":
                await self._run(state.draft, job)

    async def _hear(self, draft: Draft, job: Job) -> None:
        new = job.new
        voice = Voice(new.text, new.duration_s, size_bytes=new.size_bytes)
        try:
            text = await self._ports.hear(draft.scope, voice)
        except StoreFailed:
            raise
        except TakopiError as error:
            await self._refuse(draft, job, error)
            return
        await self._ports.db.write(lambda conn: rows.put_transcript(conn, job.id, text))

    async def _merge(self, draft: Draft, job: Job) -> None:
        words, text = draft.words, job.new.text
        try:
            if words is None:
                words, text = self._ports.split(draft.scope, text)
                await self._ports.place(draft.scope, words)
        except Refused as error:
            await self._refuse(draft, job, error)
            return
        version = None
        if text.strip():
            try:
                version = await self._next_version(draft, job, text)
            except StoreFailed:
                raise
            except TakopiError as error:
                why = f"{error.what}. {error.way_out}".strip()
                await self._fail(job, draft.scope, why)
                return

        def change(conn: sqlite3.Connection) -> None:
            current = rows.find(conn, draft.scope)
            # Without its draft here, the chat has moved, and the input with it.
            if current is not None and rows.drop_job(conn, job.id):
                current = replace(current, words=words)
                rows.save(conn, current if version is None else with_version(current, version))

        await self._ports.db.write(change)
        self._faces.touch(draft.scope)

    async def _next_version(self, draft: Draft, job: Job, text: str) -> str:
        if job.state != "append":
            return await self._ports.master.merge(draft.text, text)
        version = appended(draft, text)
        if len(version) > MAX_TEXT_CHARS:
            raise UnusableAnswer(f"the draft would be over {MAX_TEXT_CHARS} characters")
        return version

    async def _revert(self, draft: Draft, job: Job) -> None:
        earlier = reverted(draft)

        def change(conn: sqlite3.Connection) -> Draft | None:
            if not rows.drop_job(conn, job.id):
                return None
            if earlier is None:
                return end(conn, draft)
            rows.save(conn, earlier)
            return None

        ended = await self._ports.db.write(change)
        if ended is not None:
            self._faces.delete(ended)
        self._faces.touch(draft.scope)

    async def _run(self, draft: Draft, job: Job) -> None:
        choices = await self._ports.db.read(lambda conn: scopes.get(conn, draft.scope))
        target = read_target(choices.target)
        sent = draft

        def finish(conn: sqlite3.Connection) -> bool:
            nonlocal sent
            if not rows.drop_job(conn, job.id):
                return False
            sent = end(conn, draft)
            return True

        try:
            if not draft.versions:
                said = None
                await self._ports.db.write(lambda conn: rows.drop_job(conn, job.id))
            elif target is None:
                said = await self._ports.start(
                    draft.scope,
                    draft.words or "",
                    prompt=draft.text,
                    card=card_ref(draft),
                    also=finish,
                )
            else:
                said = await self._type_in(draft, job, target=target, finish=finish)
        except StoreFailed:
            raise
        except WindowGone:
            if target is not None:
                await self._on_gone(draft.scope, target)
            return
        except TakopiError as error:
            await self._refuse(draft, job, error)
            return
        if said is not None:
            max_units = self._ports.transport(draft.scope).max_units
            self._faces.leave(sent, sent_card(sent, said, max_units=max_units))
        self._faces.touch(draft.scope)

    async def _type_in(
        self,
        draft: Draft,
        job: Job,
        *,
        target: Target,
        finish: Callable[[sqlite3.Connection], bool],
    ) -> str | None:
        if job.state == "sending":
            raise Refused(UNCERTAIN.format(label=target.label))
        if not await self._ports.db.write(lambda conn: rows.set_state(conn, job.id, "sending")):
            return None
        await self._ports.tmux.type_in(target, draft.text)
        if not await self._ports.db.write(finish):
            return None
        return f"Sent to the tmux window {target.label}"

    async def _fail(self, job: Job, scope: Scope, why: str) -> None:
        """The queue stands still, until somebody says what is to become of this input."""
        await self._ports.db.write(lambda conn: rows.set_state(conn, job.id, "failed", why=why))
        self._faces.touch(scope)

    async def _refuse(self, draft: Draft, job: Job, error: TakopiError) -> None:
        """Say why this cannot be done, and go on with the next."""
        scope = draft.scope
        message = Outgoing(refusal(error), reply_to=job.new.message_id or draft.card_id)

        def change(conn: sqlite3.Connection) -> Draft | None:
            if not rows.drop_job(conn, job.id):
                return None
            self._ports.put(conn, scope, message)
            is_over = not draft.versions and not rows.jobs(conn, scope)
            return end(conn, draft) if is_over else None

        ended = await self._ports.db.write(change)
        self._ports.transport(scope).wake(scope.chat)
        if ended is not None:
            self._faces.delete(ended)
        self._faces.touch(scope)


def _next(conn: sqlite3.Connection, scope: Scope) -> State | None:
    jobs = rows.jobs(conn, scope)
    if not jobs or jobs[0].state == "failed":
        return None
    return State(rows.open_draft(conn, scope), jobs)
