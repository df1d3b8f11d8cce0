"""The contracts between rooms: what a feature may ask of a part that it must not import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from takopi.core.events import Answer, Ask, Completed, Event
from takopi.core.ids import EngineId, ResumeToken


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The bounds of one engine process."""

    grace_s: float = 2.0
    ask_s: float = 3600.0
    line_bytes: int = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EngineJob:
    """One invocation of an engine: what to do, where, and as which conversation."""

    prompt: str
    cwd: Path
    system: str | None = None
    resume: ResumeToken | None = None
    model: str | None = None
    limits: EngineLimits = field(default_factory=EngineLimits)


class AnswerPort(Protocol):
    """Where an engine's questions go. The caller sets the deadline."""

    async def ask(self, ask: Ask) -> Answer:
        """Show the ask to a person and wait for what they decide."""
        ...


class Engine(Protocol):
    """A coding agent behind one contract."""

    @property
    def id(self) -> EngineId:
        """The name it goes by in chat and config."""
        ...

    def resume_line(self, token: ResumeToken) -> str:
        """The line that continues this thread in a terminal."""
        ...

    def parse_resume(self, text: str) -> ResumeToken | None:
        """The last resume line of this engine in a text, if there is one."""
        ...

    async def run(
        self, job: EngineJob, emit: Callable[[Event], None], answers: AnswerPort
    ) -> Completed:
        """Run to the end and say how it ended. Cancellation raises and leaves no process."""
        ...
