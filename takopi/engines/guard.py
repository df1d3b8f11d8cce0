"""Holds an engine to the contract, whatever its code does; one for asyncio is hosted here too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
import trio

from takopi.core.events import Answer, Ask, Completed, Event, Started
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import AnswerPort, Engine, EngineJob
from takopi.engines.pump import NOBODY

CANCELS = 3
"""How often an asyncio engine is told to stop before it is left to itself."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.engines")


class AsyncioTask(Protocol):
    """What is needed of a task of asyncio."""

    def cancel(self) -> bool:
        """Ask it to end."""
        ...

    def cancelled(self) -> bool:
        """Whether it ended because it was asked to."""
        ...

    def result(self) -> Completed:
        """What it returned; raises what it raised."""
        ...

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object:
        """Call `fn` once it has ended."""
        ...


class AsyncioLoop(Protocol):
    """What is needed of trio-asyncio's loop."""

    def create_task(self, coro: Coroutine[Any, Any, Completed]) -> AsyncioTask:
        """Start a coroutine of asyncio."""
        ...

    def trio_as_future(self, proc: Callable[..., Awaitable[Any]], *args: object) -> Awaitable[Any]:
        """Start a Trio function; the future that it becomes is one of asyncio."""
        ...


@dataclass(frozen=True, slots=True)
class GuardedEngine:
    """Emits at most one `Started` and nothing after its end; what it raises is its `Completed`.

    An ask that nobody answers in time is denied.
    """

    id: EngineId
    engine: Engine
    loop: AsyncioLoop | None = None

    def resume_line(self, token: ResumeToken) -> str:
        """The line that continues this thread in a terminal."""
        return self.engine.resume_line(token)

    def parse_resume(self, text: str) -> ResumeToken | None:
        """The last resume line of this engine in a text, if there is one."""
        try:
            return self.engine.parse_resume(text)
        except Exception:  # a message must not be lost because an engine cannot read it
            log.exception("engine.failed", engine=self.id)
            return None

    async def run(
        self, job: EngineJob, emit: Callable[[Event], None], answers: AnswerPort
    ) -> Completed:
        """Run to the end and say how it ended. Cancellation raises."""
        outlet = _Outlet(emit)
        try:
            return await self._run(job, outlet.emit, _TimedAnswers(answers, job.limits.ask_s))
        except Exception as error:  # its bug is this run's failure and nobody else's
            log.exception("engine.failed", engine=self.id)
            what = f"the engine {self.id} failed: {type(error).__name__}: {error}"
            return Completed(ok=False, error=what, resume=outlet.resume)
        finally:
            outlet.closed = True

    async def _run(
        self, job: EngineJob, emit: Callable[[Event], None], answers: AnswerPort
    ) -> Completed:
        if self.loop is None:
            return await self.engine.run(job, emit, answers)
        port = _AsyncioAnswers(self.loop, answers)
        task = self.loop.create_task(self.engine.run(job, emit, port))
        ended = trio.Event()
        task.add_done_callback(lambda _task: ended.set())
        try:
            await ended.wait()
        except trio.Cancelled:
            # More than once: asyncio's own wait_for may swallow a cancel, and an engine as well.
            for _ in range(CANCELS):
                task.cancel()
                with trio.move_on_after(job.limits.grace_s, shield=True):
                    await ended.wait()
                    break
            else:
                log.error("engine.stuck", engine=self.id)
            raise
        if task.cancelled():
            return Completed(ok=False, error=f"the engine {self.id} cancelled itself")
        return task.result()


@dataclass(slots=True)
class _Outlet:
    out: Callable[[Event], None]
    resume: ResumeToken | None = None
    closed: bool = False

    def emit(self, event: Event) -> None:
        if self.closed or (isinstance(event, Started) and self.resume is not None):
            return
        if isinstance(event, Started):
            self.resume = event.resume
        self.out(event)


@dataclass(frozen=True, slots=True)
class _TimedAnswers:
    """No engine is left hanging, also one that sets no deadline itself."""

    answers: AnswerPort
    ask_s: float

    async def ask(self, ask: Ask) -> Answer:
        with trio.move_on_after(self.ask_s):
            return await self.answers.ask(ask)
        return NOBODY


@dataclass(frozen=True, slots=True)
class _AsyncioAnswers:
    """The answer port as asyncio sees it."""

    loop: AsyncioLoop
    answers: AnswerPort

    async def ask(self, ask: Ask) -> Answer:
        return await self.loop.trio_as_future(self.answers.ask, ask)
