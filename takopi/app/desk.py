"""What a command or a press is handled with: the parts of the daemon that it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from takopi.app.drafting import Ear
from takopi.app.filing import Intake
from takopi.app.turns import Turns
from takopi.config.loaded import Config
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Incoming, IncomingMessage
from takopi.core.outgoing import Card
from takopi.drafts.service import Drafts
from takopi.interview.service import Interviews
from takopi.runs.asks import Asks
from takopi.runs.request import Requests
from takopi.runs.schedule import Schedule
from takopi.runs.workshop import Workshop
from takopi.store.inbox import Received


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything within reach of a command. `last_poll_s` is how long ago each transport last
    heard from its server; None: never."""

    shop: Workshop
    schedule: Schedule
    requests: Requests
    asks: Asks
    drafts: Drafts
    interviews: Interviews
    turns: Turns
    ear: Ear
    intake: Intake
    started_at: float
    last_poll_s: Callable[[], Mapping[str, float | None]]
    reread: Callable[[Received], Incoming | None]

    @property
    def config(self) -> Config:
        """The config as it is now."""
        return self.shop.config()

    async def say(self, scope: Scope, card: Card, *, reply_to: int | None = None) -> None:
        """Say something that must arrive."""
        await self.shop.tell(scope, card, reply_to=reply_to)

    def edit(self, ref: MessageRef, scope: Scope, card: Card) -> None:
        """Let a card read differently."""
        self.shop.transport(scope).edit(ref, card)


@dataclass(frozen=True, slots=True)
class Call:
    """A command as it was typed: its name without the slash, and the words after it."""

    name: str
    args: str
    message: IncomingMessage

    @property
    def scope(self) -> Scope:
        """Where it was typed."""
        return self.message.scope


Rest: TypeAlias = Callable[[], Awaitable[None]]
"""What is left of a command that takes long: its chat goes on meanwhile."""

Command: TypeAlias = Callable[[Desk, Call], Awaitable[Rest | None]]
"""Answers one call, or begins to; `Refused` becomes the answer."""


async def answer(desk: Desk, call: Call, card: Card) -> None:
    """Reply to a command."""
    await desk.say(call.scope, card, reply_to=call.message.message_id)
