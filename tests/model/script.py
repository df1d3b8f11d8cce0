"""What a scripted model answers: rules over the conversation it was sent, all of them data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One piece of a conversation. What a CLI adds on its own account has the role `system`."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a model was sent, the same for every API. `tools` are the names on offer."""

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[str, ...]
    stream: bool

    @property
    def latest(self) -> Turn | None:
        """What waits for an answer: the last thing a person or a tool said."""
        spoken = (turn for turn in reversed(self.turns) if turn.role in {"user", "tool"})
        return next(spoken, None)

    @property
    def system(self) -> str:
        return "\n".join(turn.text for turn in self.turns if turn.role == "system")


@dataclass(frozen=True, slots=True)
class Say:
    """An answer in words, with `pause_s` between one word and the next."""

    text: str
    pause_s: float = 0


@dataclass(frozen=True, slots=True)
class Recall:
    """An answer that proves memory: what `pattern` captured in the conversation, latest first.

    Nothing but the conversation it was sent can fill the `{}` of `found`.
    """

    pattern: str
    found: str = "{}"
    otherwise: str = "I was never told."
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call after some words. A string as arguments is the input of a free-form tool.

    An argument that is a `Recall` becomes what is remembered. A tool that the client did not offer
    is a fault of the script, unless it is one that the client keeps back until it is called.
    """

    tool: str
    arguments: Mapping[str, object] | str
    text: str = ""
    kept_back: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """An error of the API, in the words of the API that was asked."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Hang:
    """Words, perhaps, and then silence until the client hangs up."""

    text: str = ""


Reply: TypeAlias = Say | Recall | Call | Fail | Hang


@dataclass(frozen=True, slots=True)
class Rule:
    """`reply`, if `pattern` is found in what waits for an answer, at most `times` times.

    `role` narrows it to a person's words or a tool's result, `system` to a system prompt.
    """

    pattern: str
    reply: Reply
    role: Literal["user", "tool"] | None = None
    system: str = ""
    times: int | None = None

    def fits(self, conversation: Conversation) -> bool:
        latest = conversation.latest
        return (
            latest is not None
            and self.role in {None, latest.role}
            and re.search(self.pattern, latest.text) is not None
            and re.search(self.system, conversation.system) is not None
        )


Script: TypeAlias = Sequence[Rule]


def resolve(reply: Reply, conversation: Conversation) -> Say | Call | Fail | Hang:
    """A reply with its memories filled in."""
    if isinstance(reply, Recall):
        return Say(_remember(reply, conversation))
    if isinstance(reply, Call) and not isinstance(reply.arguments, str):
        arguments = {
            name: _remember(value, conversation) if isinstance(value, Recall) else value
            for name, value in reply.arguments.items()
        }
        return replace(reply, arguments=arguments)
    return reply


def _remember(memory: Recall, conversation: Conversation) -> str:
    for turn in reversed(conversation.turns):
        if memory.role in {None, turn.role}:
            remembered = re.search(memory.pattern, turn.text)
            if remembered:
                return memory.found.format(remembered[1])
    return memory.otherwise
