"""The contracts between rooms: what a feature may ask of a part that it must not import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from takopi.core.events import Answer, Ask, Completed, Event
from takopi.core.ids import EngineId, MessageRef, ResumeToken, Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Card, Outgoing


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


class Transport(Protocol):
    """How messages go out to where people talk. What comes in, comes through the inbox.

    What must arrive is put into the store's outbox by whoever says it, in the same transaction
    as the fact it tells of; `wake` then says that there is something to send.
    """

    @property
    def name(self) -> str:
        """The transport's name in scopes and references."""
        ...

    @property
    def bot_name(self) -> str | None:
        """The name that people mention the bot by, without the @."""
        ...

    @property
    def max_units(self) -> int:
        """How much text one message holds, in UTF-16 units."""
        ...

    async def send(self, scope: Scope, message: Outgoing) -> MessageRef:
        """Send once, in order with everything else of the chat, and say which message it became.

        Raises `TakopiError` when it did not arrive: nothing is tried again.
        """
        ...

    def edit(self, ref: MessageRef, card: Card) -> None:
        """Let the message read so as soon as the chat's pace allows; a newer edit replaces it."""
        ...

    def clear_buttons(self, ref: MessageRef) -> None:
        """Leave the message nothing to press, whatever it says."""
        ...

    def delete(self, ref: MessageRef) -> None:
        """Remove the message, and forget edits of it that have not been sent."""
        ...

    def acknowledge(self, press: Press, text: str = "", *, alert: bool = False) -> None:
        """Answer a press at once, with a short text to be shown if there is one."""
        ...

    def wake(self, chat: Scope) -> None:
        """Something for this chat is new in the outbox."""
        ...

    async def settle(self, chat: Scope) -> None:
        """Return when it is known which message became of what is being sent to the chat now."""
        ...

    async def create_topic(self, chat: Scope, name: str) -> Scope:
        """Make a topic; refused where the chat has none."""
        ...
