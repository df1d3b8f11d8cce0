"""Names of things: values that compare equal when they mean the same thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

RunId = NewType("RunId", int)
"""A run in the ledger."""

InboxId = NewType("InboxId", int)
"""An update in the inbox."""

EngineId = NewType("EngineId", str)
"""An engine: claude, codex, opencode, pi, demo, or a plugin's."""


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """One conversation inside an engine, in the engine's own words."""

    engine: EngineId
    value: str


@dataclass(frozen=True, slots=True)
class MessageRef:
    """One message on one transport."""

    transport: str
    chat_id: int
    message_id: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Where people talk: a chat, or a topic in it."""

    transport: str
    chat_id: int
    topic_id: int | None = None

    @property
    def chat(self) -> Scope:
        """The chat that this scope is, or that its topic belongs to."""
        return self if self.topic_id is None else Scope(self.transport, self.chat_id)
