"""Which run goes when: one at a time in each thread, threads side by side up to a cap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import structlog
import trio

from takopi.core.errors import StoreFailed
from takopi.core.events import Completed
from takopi.core.ids import MessageRef, ResumeToken, RunId, Scope
from takopi.kit.lanes import Lanes, Ticket
from takopi.runs.asks import Asks
from takopi.runs.edits import Face
from takopi.runs.execute import finish, work
from takopi.runs.live import Live
from takopi.runs.signals import Signals
from takopi.runs.workshop import Workshop
from takopi.store import ledger
from takopi.store.ledger import Run

Lane = tuple[str, str]
"""An engine and its thread; a run without a thread has a lane of its own."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.runs")


class Schedule:
    """All runs of this process. They live in `nursery`, which is given to it.

    `signals` is set before the first run, by whoever puts the features together.
    """

    signals: Signals | None = None

    def __init__(self, nursery: trio.Nursery, shop: Workshop, asks: Asks) -> None:
        self._nursery = nursery
        self._shop = shop
        self._asks = asks
        self._live: dict[RunId, Live] = {}
        self._tickets: dict[RunId, Ticket[Lane, Live]] = {}
        self._idle = trio.Event()
        self._lanes = Lanes[Lane, Live](
            nursery,
            self._work,
            max_active=shop.config().limits.max_runs,
            on_move=_moved,
        )

    def __iter__(self) -> Iterator[Live]:
        return iter(self._live.values())

    def find(self, run_id: RunId) -> Live | None:
        """The run, if it is queued or working here."""
        return self._live.get(run_id)

    @property
    def queued(self) -> int:
        """How many runs wait."""
        return self._lanes.waiting

    @property
    def running(self) -> int:
        """How many runs work."""
        return len(self._live) - self._lanes.waiting

    def must_wait(self, thread: ResumeToken | None, waits_for: RunId | None) -> bool:
        """Whether a run of this thread, or of the one that this run will have, could not begin."""
        if self.running >= self._shop.config().limits.max_runs:
            return True
        if thread is not None:
            lane = _lane_of(thread)
            return any(ticket.key == lane for ticket in self._tickets.values())
        return waits_for is not None and waits_for in self._live

    def resize(self, max_runs: int) -> None:
        """Take a new cap; what works goes on."""
        self._lanes.resize(max_runs)

    def submit(
        self,
        run: Run,
        *,
        waits_for: RunId | None = None,
        session_cwd: Path | None = None,
        notes: Sequence[str] = (),
    ) -> Live:
        """Let a run of the ledger begin as soon as its lane is free, and show it at once."""
        live = Live(
            run,
            self._shop,
            self._own_lane,
            waits_for=waits_for,
            session_cwd=session_cwd,
            notes=list(notes),
        )
        live.face = self._face(live)
        self._live[run.id] = live
        self._tickets[run.id] = self._lanes.put(self._lane(live), live)
        live.place = self._tickets[run.id].place
        if self._tickets[run.id].started:
            live.stage = "working"
        self._nursery.start_soon(live.face.show, name=f"face of run {run.id}")
        return live

    async def cancel(self, run_id: RunId) -> bool:
        """Stop a run that works, or drop one that waits; False if it is neither."""
        live = self._live.get(run_id)
        if live is None:
            return False
        if self._lanes.drop(self._tickets[run_id]):
            await self._end_queued(live)
        else:
            live.turn("cancelling")
            live.scope.cancel()
        return True

    async def drain(self) -> None:
        """Begin nothing more, and return when nothing works; the caller sets the deadline."""
        self._lanes.resize(0)
        while self.running:
            self._idle = trio.Event()
            await self._idle.wait()

    async def _work(self, live: Live) -> None:
        self._note_neighbours(live)
        try:
            await work(live, self._asks, self.signals)
        finally:
            self._forget(live)

    async def _end_queued(self, live: Live) -> None:
        self._forget(live)
        await finish(live, "cancelled", Completed(ok=False, error="It had not begun."))

    def _forget(self, live: Live) -> None:
        del self._live[live.id]
        del self._tickets[live.id]
        self._idle.set()

    def _face(self, live: Live) -> Face:
        async def remember(ref: MessageRef) -> None:
            try:
                await self._shop.db.write(lambda conn: ledger.set_progress(conn, live.id, ref))
            except StoreFailed as error:
                log.warning("progress.not_recorded", why=error.what)

        run = live.run
        return Face(
            self._shop.transport(run.scope),
            run.scope,
            reply_to=None if run.prompt_ref is None else run.prompt_ref.message_id,
            ref=run.progress_ref,
            render=live.card,
            on_shown=remember,
        )

    def _lane(self, live: Live) -> Lane:
        if live.run.thread is not None:
            return _lane_of(live.run.thread)
        waited = None if live.waits_for is None else self._live.get(live.waits_for)
        if waited is None:
            return ("", str(live.id))
        return self._tickets[waited.id].key

    def _own_lane(self, live: Live, token: ResumeToken) -> None:
        """The run's engine has said which thread it is: nobody else may begin one in it."""
        ticket = self._tickets[live.id]
        self._lanes.rekey(ticket.key, _lane_of(token))
        waiting = [each for each in self._live.values() if each.waits_for == live.id]
        for each in waiting:
            self._nursery.start_soon(self._adopt, each, token)

    async def _adopt(self, live: Live, token: ResumeToken) -> None:
        """Let a waiting run know its thread, also after a restart."""
        try:
            await self._shop.db.write(lambda conn: ledger.adopt_thread(conn, live.id, token))
        except StoreFailed as error:
            log.warning("thread.not_adopted", why=error.what)

    def _note_neighbours(self, live: Live) -> None:
        """Two agents in one folder are for the person to know about."""
        live.place = 0
        run = live.run
        others = [
            other.id
            for other in self._live.values()
            if other is not live
            and other.began_at is not None
            and (other.run.context, other.cwd) == (run.context, run.cwd or other.cwd)
        ]
        if others:
            live.notes.append(f"run {others[0]} works in the same folder")

    def in_scope(self, scope: Scope) -> list[Live]:
        """The runs of a chat or topic, in the order they were asked for."""
        return [live for live in self._live.values() if live.run.scope == scope]


def _lane_of(token: ResumeToken) -> Lane:
    return (token.engine, token.value)


def _moved(ticket: Ticket[Lane, Live]) -> None:
    ticket.job.place = ticket.place
    ticket.job.face.touch()
