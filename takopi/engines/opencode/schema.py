"""The lines of `opencode run --format json`: decoded once, and each names its session."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from takopi.engines.jsonl import decode_line, decode_part, tags_of


class TextPart(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    message_id: str = msgspec.field(default="", name="messageID")
    text: str = ""


class ToolMetadata(msgspec.Struct, frozen=True):
    exit: int | None = None


class ToolState(msgspec.Struct, frozen=True):
    status: str = ""
    input: msgspec.Raw = msgspec.Raw(b"null")
    output: str | None = None
    error: str | None = None
    title: str | None = None
    metadata: ToolMetadata | None = None


class ToolPart(msgspec.Struct, frozen=True):
    id: str
    tool: str
    state: ToolState


class Cache(msgspec.Struct, frozen=True):
    read: int | None = None
    write: int | None = None


class Tokens(msgspec.Struct, frozen=True):
    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache: Cache | None = None


class FinishPart(msgspec.Struct, frozen=True):
    reason: str = ""
    tokens: Tokens | None = None
    cost: float | None = None


class ErrorData(msgspec.Struct, frozen=True, rename="camel"):
    message: str | None = None
    status_code: int | None = None
    ref: str | None = None


class ErrorCause(msgspec.Struct, frozen=True):
    name: str = ""
    data: ErrorData | None = None


class _Said(msgspec.Struct, frozen=True, tag_field="type"):
    session_id: str = msgspec.field(name="sessionID")


class StepStart(_Said, frozen=True, tag="step_start"):
    pass


class Text(_Said, frozen=True, tag="text"):
    part: TextPart


class Reasoning(_Said, frozen=True, tag="reasoning"):
    part: TextPart


class ToolUse(_Said, frozen=True, tag="tool_use"):
    part: ToolPart


class StepFinish(_Said, frozen=True, tag="step_finish"):
    part: FinishPart


class Error(_Said, frozen=True, tag="error"):
    error: ErrorCause


Line: TypeAlias = StepStart | Text | Reasoning | ToolUse | StepFinish | Error

_LINES = tags_of(Line)


class Head(msgspec.Struct, frozen=True):
    """As much of a line as tells its kind and its session."""

    type: str
    session_id: str = msgspec.field(default="", name="sessionID")

    @property
    def known(self) -> bool:
        return self.type in _LINES


class Todo(msgspec.Struct, frozen=True):
    content: str
    status: str = ""


class Todos(msgspec.Struct, frozen=True):
    todos: tuple[Todo, ...]


_line = msgspec.json.Decoder(Line)
_head = msgspec.json.Decoder(Head)
_todos = msgspec.json.Decoder(Todos)


def decode(line: bytes) -> Line | Head:
    """One line; of an unknown kind, its head alone."""
    return decode_line(line, _line, head=_head)


def decode_todos(arguments: msgspec.Raw) -> tuple[Todo, ...]:
    """The to-do list that a call writes; empty, if it is none."""
    try:
        return decode_part(arguments, _todos).todos
    except msgspec.MsgspecError:
        return ()
