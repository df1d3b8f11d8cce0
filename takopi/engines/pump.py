"""Runs one CLI from its first line to its one `Completed`, whatever it does in between.

child → lines → dialect → emit, and back again: answers to its asks go to its stdin. Nothing that
comes on stdout can end the run early, and a cancel leaves no process behind.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import structlog
import trio

from takopi.config.environ import child_environ
from takopi.config.schema import EngineSettings
from takopi.core.errors import CannotStart, ChildLost
from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import AnswerPort, EngineJob
from takopi.engines.spec import Dialect, EngineSpec, Finished, Reply, Said, Withdrawn
from takopi.kit.exchange import exchange, feed_bytes
from takopi.kit.lines import LineReader, Oversize
from takopi.kit.mask import mask
from takopi.kit.proc import Command, Keeper

INTERRUPT_S = 0.04
"""How long a CLI has between the polite word and SIGTERM: a cancel must not be felt as slow."""

VERSION_S = 10.0
WHEREABOUTS_S = 30.0
INQUIRY_BYTES = 16 * 1024
NOBODY = Answer("deny", reason="deny, nobody answered")
MAX_OPEN_ASKS = 50
TOO_MANY = Answer("deny", reason="deny, too many questions are open at once")

S = TypeVar("S", bound=EngineSettings)
log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.engines")


@dataclass(frozen=True, slots=True)
class CliEngine(Generic[S]):
    """An engine that is a CLI: what its spec says, run under the keeper."""

    spec: EngineSpec[S]
    settings: S
    keeper: Keeper
    environ: Mapping[str, str]
    secrets: tuple[str, ...] = ()

    @property
    def id(self) -> EngineId:
        """The name it goes by in chat and config."""
        return self.spec.id

    @property
    def program(self) -> tuple[str, ...]:
        """The words that start it, before its arguments."""
        configured = (self.settings.command,) if self.settings.command else ()
        return configured or self.spec.program or (self.spec.id,)

    def resume_line(self, token: ResumeToken) -> str:
        """The line that continues this thread in a terminal."""
        return self.spec.resume_line(token)

    def parse_resume(self, text: str) -> ResumeToken | None:
        """The last resume line of this engine in a text, if there is one."""
        return self.spec.parse_resume(text)

    async def run(
        self, job: EngineJob, emit: Callable[[Event], None], answers: AnswerPort
    ) -> Completed:
        """Run to the end and say how it ended. Cancellation raises and leaves no process."""
        dialect = self.spec.dialect(self.settings, job)
        talk = _Talk(dialect, emit, answers, job=job, secrets=self.secrets)
        command = self._command(self.spec.argv(self.settings, job), job)
        try:
            if elsewhere := await self._elsewhere(job):
                error = f"{self.spec.id} keeps this thread for {elsewhere}; start a new one here."
                return Completed(ok=False, error=error, thread_lost=True)
            ending = await exchange(
                self.keeper, command, feed=talk.feed, read=talk.read, grace_s=job.limits.grace_s
            )
        except CannotStart as error:
            return Completed(ok=False, error=f"{error.what}. Mend it with: {self.spec.install}")
        except ChildLost as error:
            return Completed(ok=False, error=error.what, resume=talk.resume)
        stderr = mask(ending.stderr, self.secrets)
        completed = dialect.end(ending.code, stderr.decode(errors="replace"))
        if not completed.ok and talk.lines == 0 and (old := await self._too_old(job)):
            return Completed(ok=False, error=old)
        return completed

    def _command(self, args: list[str], job: EngineJob) -> Command:
        env = child_environ(
            self.environ, secrets=self.secrets, cwd=job.cwd, extra=self.settings.env
        )
        return Command([*self.program, *args], job.cwd, self.spec.environ(self.settings, env))

    async def _too_old(self, job: EngineJob) -> str | None:
        """Asked only after a run that failed without a word: then the version is worth a look."""
        said = b""
        with trio.move_on_after(VERSION_S):
            said = await self._inquire(["--version"], job)
        found = re.search(rb"\d+(?:\.\d+)+", said)
        if found is None:
            return None
        version = tuple(map(int, found[0].split(b".")))
        if version >= self.spec.oldest:
            return None
        need = ".".join(map(str, self.spec.oldest))
        return (
            f"{self.spec.id} {found[0].decode()} is too old, takopi needs {need} or newer. "
            f"Mend it with: {self.spec.install}"
        )

    async def _elsewhere(self, job: EngineJob) -> Path | None:
        """The folder of the thread to be resumed, if that is another than the job's."""
        if job.resume is None or self.spec.whereabouts is None:
            return None
        said = b""
        with trio.move_on_after(WHEREABOUTS_S):
            said = await self._inquire(self.spec.whereabouts.argv(job.resume), job)
        folder = self.spec.whereabouts.folder(said)
        return None if folder is None or _is_same(folder, job.cwd) else folder

    async def _inquire(self, args: list[str], job: EngineJob) -> bytes:
        """The beginning of what the CLI says when it is called with `args`."""
        said = bytearray()

        async def read(stdout: trio.abc.ReceiveStream) -> None:
            async for chunk in stdout:
                said.extend(chunk[: INQUIRY_BYTES - len(said)])

        await exchange(
            self.keeper,
            self._command(args, job),
            feed=feed_bytes(b""),
            read=read,
            grace_s=job.limits.grace_s,
        )
        return bytes(said)


def _is_same(folder: Path, other: Path) -> bool:
    return os.path.realpath(folder) == os.path.realpath(other)


@dataclass(slots=True)
class _Talk:
    """The two ends of one conversation: what is heard, and what is still to be said."""

    dialect: Dialect
    emit: Callable[[Event], None]
    answers: AnswerPort
    job: EngineJob
    secrets: tuple[str, ...] = ()
    lines: int = 0
    resume: ResumeToken | None = None
    unreadable: int = 0
    skipped: int = 0
    refused: int = 0
    finished: bool = False
    open_asks: dict[str, trio.CancelScope] = field(default_factory=dict[str, trio.CancelScope])
    to_say: trio.MemorySendChannel[bytes] = field(init=False)
    saying: trio.MemoryReceiveChannel[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.to_say, self.saying = trio.open_memory_channel[bytes](math.inf)

    async def feed(self, stdin: trio.abc.SendStream) -> None:
        """Say the opening, then every answer, until the engine has said its last word."""
        self.to_say.send_nowait(self.dialect.opening())
        if not self.dialect.two_way:
            self.to_say.close()
        try:
            async for data in self.saying:
                await stdin.send_all(data)
        except trio.BrokenResourceError:
            return  # it no longer listens; what it has said still counts
        except trio.Cancelled:
            if not self.finished and (word := self.dialect.interrupt()):
                # A CLI that died without a result is cancelled here too, and no longer listens.
                with (
                    contextlib.suppress(trio.BrokenResourceError),
                    trio.move_on_after(INTERRUPT_S, shield=True),
                ):
                    await stdin.send_all(word)
                    await trio.sleep_forever()
            raise
        await stdin.aclose()

    async def read(self, stdout: trio.abc.ReceiveStream) -> None:
        """Hear every line; returns at the end of stdout, when no ask can be answered any more."""
        reader = LineReader(stdout, max_bytes=self.job.limits.line_bytes)
        failures: list[Exception] = []
        async with trio.open_nursery() as asks:
            try:
                while batch := await reader.receive():
                    for line in batch:
                        self._hear(line, asks)
            except Exception as error:  # ruff: ignore[blind-except] raised below, not as a group
                failures.append(error)
            asks.cancel_scope.cancel()
        if failures:
            raise failures[0]

    def _hear(self, line: bytes | Oversize, asks: trio.Nursery) -> None:
        if isinstance(line, Oversize):
            self.skipped += 1
            self._warn("skipped", f"skipped a line of {line.size} bytes", self.skipped)
            return
        if not line or line.isspace():
            return
        try:
            said = self.dialect.read(mask(line, self.secrets))
        except msgspec.MsgspecError:
            self.unreadable += 1
            self._warn("unreadable", "a line that is not JSON", self.unreadable)
            return
        self.lines += 1
        for event in said:
            self._take(event, asks)

    def _take(self, event: Said, asks: trio.Nursery) -> None:
        match event:
            case Action():
                self.emit(event)
            case Started():
                if self.resume is None:
                    self.resume = event.resume
                    self.emit(event)
            case Ask():
                self._open(event, asks)
            case Withdrawn():
                if scope := self.open_asks.get(event.ask_id):
                    scope.cancel()
            case Reply():
                self._say(event.data)
            case Finished():
                self.finished = True
                self.to_say.close()

    def _warn(self, name: str, what: str, count: int) -> None:
        # One action for all of a kind: ten thousand bad lines are not ten thousand steps.
        title = what if count == 1 else f"{what} ({count} so far)"
        self.emit(Action(f"takopi.{name}", "warning", title))

    def _open(self, ask: Ask, asks: trio.Nursery) -> None:
        if ask.id in self.open_asks:
            return  # said twice, and answered once
        if len(self.open_asks) >= MAX_OPEN_ASKS:
            self.refused += 1
            self._warn("asks", "one question too many at once, and it was denied", self.refused)
            self._say(self.dialect.answer(ask, TOO_MANY))
            return
        self.open_asks[ask.id] = trio.CancelScope()
        asks.start_soon(self._ask, ask)

    async def _ask(self, ask: Ask) -> None:
        answer = NOBODY
        with self.open_asks[ask.id] as withdrawn:
            try:
                with trio.move_on_after(self.job.limits.ask_s):
                    answer = await self.answers.ask(ask)
            except Exception:  # one ask that cannot be shown must not end the run
                log.exception("ask.failed", ask=ask.id)
                self._warn("ask", "a question could not be shown, and was denied", 1)
        self.open_asks.pop(ask.id, None)
        if not withdrawn.cancelled_caught:
            self._say(self.dialect.answer(ask, answer))

    def _say(self, data: bytes) -> None:
        if not self.finished:
            self.to_say.send_nowait(data)
