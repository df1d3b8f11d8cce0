"""The lines the demo engine writes: known kinds are decoded once, unknown ones by their name."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from takopi.core.events import ActionKind, Phase
from takopi.engines.jsonl import decode_line, tags_of


class Thread(msgspec.Struct, frozen=True, tag_field="type", tag="thread"):
    """Which thread this is."""

    id: str
    model: str | None = None


class Step(msgspec.Struct, frozen=True, tag_field="type", tag="step"):
    """Something that it does."""

    id: str
    kind: ActionKind
    title: str = ""
    phase: Phase = "completed"
    ok: bool | None = None
    detail: str = ""


class Option(msgspec.Struct, frozen=True):
    """One choice of a question."""

    label: str
    description: str = ""


class Asked(msgspec.Struct, frozen=True):
    """One question."""

    text: str
    header: str = ""
    choices: tuple[Option, ...] = ()
    several: bool = False


class Wait(msgspec.Struct, frozen=True, tag_field="type", tag="ask"):
    """It waits for a person: an approval of a tool or a plan, or answers to questions."""

    id: str
    kind: Literal["approval", "question"]
    tool: str = ""
    target: str = ""
    preview: str = ""
    plan: str | None = None
    for_thread: bool = False
    questions: tuple[Asked, ...] = ()


class Withdraw(msgspec.Struct, frozen=True, tag_field="type", tag="withdraw"):
    """It waits no longer."""

    id: str


class Spent(msgspec.Struct, frozen=True):
    """What it would have used, were it a model."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


class Result(msgspec.Struct, frozen=True, tag_field="type", tag="result"):
    """How the turn ended; nothing comes after it."""

    ok: bool
    answer: str = ""
    error: str | None = None
    usage: Spent | None = None


class Error(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """Why there is no turn at all; nothing comes after it."""

    code: str = ""
    message: str = ""


Line: TypeAlias = Thread | Step | Wait | Withdraw | Result | Error

_LINES = tags_of(Line)


class Head(msgspec.Struct, frozen=True):
    """As much of a line as tells its kind."""

    type: str

    @property
    def known(self) -> bool:
        return self.type in _LINES


_line = msgspec.json.Decoder(Line)
_head = msgspec.json.Decoder(Head)


def decode(line: bytes) -> Line | Head:
    """One line; of an unknown kind, its head alone."""
    return decode_line(line, _line, head=_head)
