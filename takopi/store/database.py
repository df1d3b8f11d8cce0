"""One writer for everything that is remembered: what `write` returned is on the disk.

Changes are functions of the connection. They run one after another in a thread, each in its own
savepoint, and all that gather while a commit runs share the next one.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import trio

from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.store.faults import store_failure
from takopi.store.opening import Opened, open_file
from takopi.store.schema import STEPS, Step

T = TypeVar("T")

_LATER = "try again when takopi is up"


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: Any = None
    error: Exception | None = None


@dataclass(slots=True, eq=False)
class _Job:
    change: Callable[[sqlite3.Connection], Any]
    task: trio.lowlevel.Task
    begun: bool = False
    outcome: _Outcome = _Outcome()

    def settle(self, outcome: _Outcome) -> None:
        self.outcome = outcome
        trio.lowlevel.reschedule(self.task)


def _refuse(jobs: Iterable[_Job], what: str) -> None:
    for job in jobs:
        job.settle(_Outcome(error=StoreFailed(what, way_out=_LATER)))


class Database:
    """The open store. `set_aside` and `backup` say what opening it had to do."""

    def __init__(
        self, opened: Opened, *, on_commit: Callable[[], None] | None, stop_s: float
    ) -> None:
        self.path = opened.path
        self.set_aside: Path | None = opened.set_aside
        self.backup: Path | None = opened.backup
        self._writer = opened.writer
        self._reader = opened.reader
        self._on_commit = on_commit
        self._stop_s = stop_s
        self._queue: deque[_Job] = deque()
        self._in_hand: tuple[_Job, ...] = ()
        self._wake = trio.Event()
        self._refusal = "the store is not being served yet"
        self._serving = False
        self._closed = False
        self._damage: StoreUnfit | None = None
        self._damaged = trio.Event()
        # A thread that was given up on at a stop may still be inside SQLite.
        self._writing = threading.Lock()
        # Own limiters: the store never waits for somebody else's threads.
        self._write_slot = trio.CapacityLimiter(1)
        self._read_slot = trio.CapacityLimiter(1)

    async def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Make a change and return what it returned, once it is committed.

        What `change` raises undoes its own work and comes out here. `StoreFailed` says that the
        disk did not take it. `trio.Cancelled` comes out only while the change has not begun, and
        then it is never made. `change` must not begin or end transactions.
        """
        if not self._serving:
            raise StoreFailed(self._refusal, way_out=_LATER)
        job = _Job(change, trio.lowlevel.current_task())
        self._queue.append(job)
        self._wake.set()

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            if job.begun:
                return trio.lowlevel.Abort.FAILED
            self._queue.remove(job)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        if job.outcome.error is not None:
            self._note_damage(job.outcome.error)
            raise job.outcome.error
        return job.outcome.value

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Look at one consistent state, with everything in it that was ever confirmed."""
        if self._closed:
            raise StoreFailed("the store is closed", way_out=_LATER)
        try:
            return await trio.to_thread.run_sync(self._look, look, limiter=self._read_slot)
        except StoreUnfit as error:
            self._note_damage(error)
            raise

    async def wait_damaged(self) -> StoreUnfit:
        """Return once somebody has come upon damage: no waiting mends that."""
        await self._damaged.wait()
        assert self._damage is not None  # ruff: ignore[assert] it is set with the event
        return self._damage

    def _note_damage(self, error: Exception) -> None:
        if isinstance(error, StoreUnfit):
            self._damage = error
            self._damaged.set()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the writer until cancelled; the batch in hand is then finished, the rest refused."""
        if self._serving:
            raise RuntimeError("the store is being served already")
        hand = trio.CancelScope(shield=True)
        try:
            async with trio.open_nursery() as nursery:
                self._serving = True
                nursery.start_soon(self._work, hand)
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    self._serving = False
                    self._refusal = "the store has stopped"
                    self._wake.set()
                    # The clock starts here and not with the batch: a machine that was asleep in
                    # the middle of a commit has not failed.
                    hand.deadline = trio.current_time() + self._stop_s
        finally:
            _refuse(self._in_hand, "the disk did not answer: this may be written, or not")
            _refuse(self._queue, "the store stopped before this was written")
            self._in_hand = ()
            self._queue.clear()

    async def close(self) -> None:
        """Close both connections; nothing is read or written from here on."""
        self._closed = True
        await trio.to_thread.run_sync(
            self._reader.close, limiter=self._read_slot, abandon_on_cancel=True
        )
        # The writer last, because it moves the log into the file; and not through its slot, so
        # that it is closed even when a thread that was given up on comes back late.
        await trio.to_thread.run_sync(self._close_writer, abandon_on_cancel=True)

    async def _work(self, hand: trio.CancelScope) -> None:
        with hand:
            while self._serving:
                if not self._queue:
                    self._wake = trio.Event()
                    await self._wake.wait()
                    continue
                batch = self._in_hand = tuple(self._queue)
                self._queue.clear()
                for job in batch:
                    job.begun = True
                outcomes = await trio.to_thread.run_sync(
                    self._apply,
                    [job.change for job in batch],
                    limiter=self._write_slot,
                    abandon_on_cancel=True,
                )
                self._in_hand = ()
                for job, outcome in zip(batch, outcomes, strict=True):
                    job.settle(outcome)

    def _apply(self, changes: Sequence[Callable[[sqlite3.Connection], Any]]) -> list[_Outcome]:
        with self._writing:
            conn = self._writer
            try:
                conn.execute("BEGIN IMMEDIATE")
                outcomes = [self._attempt(change) for change in changes]
                conn.execute("COMMIT")
            except sqlite3.Error as error:
                return [_Outcome(error=self._batch_failure(error)) for _ in changes]
            finally:
                if conn.in_transaction:
                    conn.rollback()
            if self._on_commit is not None:
                self._on_commit()
            return outcomes

    def _attempt(self, change: Callable[[sqlite3.Connection], Any]) -> _Outcome:
        conn = self._writer
        conn.execute("SAVEPOINT job")
        try:
            outcome = _Outcome(change(conn))
        except Exception as error:
            if isinstance(error, sqlite3.Error):
                if not conn.in_transaction:
                    # SQLite gave up the whole transaction, and the other changes with it.
                    raise
                error = store_failure(error, self.path) or error
            conn.execute("ROLLBACK TO job")
            outcome = _Outcome(error=error)
        # Fails when `change` ended the transaction by itself: then nothing is confirmed.
        conn.execute("RELEASE job")
        return outcome

    def _look(self, look: Callable[[sqlite3.Connection], T]) -> T:
        conn = self._reader
        try:
            conn.execute("BEGIN")
            return look(conn)
        except sqlite3.Error as error:
            failure = store_failure(error, self.path)
            if failure is None:
                raise
            raise failure from error
        finally:
            if conn.in_transaction:
                conn.rollback()

    def _batch_failure(self, error: sqlite3.Error) -> StoreFailed:
        return store_failure(error, self.path) or StoreFailed(
            f"nothing was written to {self.path} ({error})", way_out="look for it in the log"
        )

    def _close_writer(self) -> None:
        with self._writing:
            self._writer.close()


@asynccontextmanager
async def open_database(
    path: Path,
    *,
    steps: tuple[Step, ...] = STEPS,
    on_commit: Callable[[], None] | None = None,
    busy_s: float = 5.0,
    stop_s: float = 5.0,
) -> AsyncGenerator[Database]:
    """Open the store; `await nursery.start(db.serve)` makes it writable.

    `on_commit` is called in the writer's thread after each commit, before anybody is told.
    `busy_s` bounds the wait for another process's lock, `stop_s` the wait for the last batch.
    """
    opened = await trio.to_thread.run_sync(partial(open_file, path, steps=steps, busy_s=busy_s))
    db = Database(opened, on_commit=on_commit, stop_s=stop_s)
    try:
        yield db
    finally:
        with trio.move_on_after(stop_s, shield=True):
            await db.close()
