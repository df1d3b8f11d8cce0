"""The lines of `pi --mode json`: what a run repeats is skipped over and never built.

Most lines are pieces of a message that comes again whole, and `agent_end` holds the whole history.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from takopi.engines.jsonl import decode_line, decode_part, tags_of


class Cost(msgspec.Struct, frozen=True):
    total: float | None = None


class Tokens(msgspec.Struct, frozen=True, rename="camel"):
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost: Cost | None = None


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """A message of any role. `content` is looked into for the assistant's alone."""

    role: str = ""
    content: msgspec.Raw = msgspec.Raw(b"null")
    model: str | None = None
    usage: Tokens | None = None
    stop_reason: str | None = None
    error_message: str | None = None


class Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None


class Result(msgspec.Struct, frozen=True):
    content: tuple[Block, ...] | str = ()

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(block.text for block in self.content if block.text)


class Session(msgspec.Struct, frozen=True, tag_field="type", tag="session"):
    id: str


class MessageEnd(msgspec.Struct, frozen=True, tag_field="type", tag="message_end"):
    message: Message


class ToolStart(
    msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="tool_execution_start"
):
    tool_call_id: str
    tool_name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"null")


class ToolEnd(
    msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="tool_execution_end"
):
    tool_call_id: str
    tool_name: str = ""
    result: msgspec.Raw = msgspec.Raw(b"null")
    is_error: bool | None = None


class RetryStart(
    msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="auto_retry_start"
):
    attempt: int | None = None
    max_attempts: int | None = None
    error_message: str = ""


class CompactionStart(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_start"):
    pass


class CompactionEnd(
    msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="compaction_end"
):
    aborted: bool | None = None
    error_message: str | None = None


class AgentStart(msgspec.Struct, frozen=True, tag_field="type", tag="agent_start"):
    pass


class AgentEnd(msgspec.Struct, frozen=True, tag_field="type", tag="agent_end"):
    pass


class MessageStart(msgspec.Struct, frozen=True, tag_field="type", tag="message_start"):
    pass


class MessageUpdate(msgspec.Struct, frozen=True, tag_field="type", tag="message_update"):
    pass


class ToolUpdate(msgspec.Struct, frozen=True, tag_field="type", tag="tool_execution_update"):
    pass


class TurnStart(msgspec.Struct, frozen=True, tag_field="type", tag="turn_start"):
    pass


class TurnEnd(msgspec.Struct, frozen=True, tag_field="type", tag="turn_end"):
    pass


Line: TypeAlias = (
    Session
    | MessageEnd
    | ToolStart
    | ToolEnd
    | RetryStart
    | CompactionStart
    | CompactionEnd
    | AgentStart
    | AgentEnd
    | MessageStart
    | MessageUpdate
    | ToolUpdate
    | TurnStart
    | TurnEnd
)

_LINES = tags_of(Line)


class Head(msgspec.Struct, frozen=True):
    """As much of a line as tells its kind."""

    type: str

    @property
    def known(self) -> bool:
        return self.type in _LINES


_line = msgspec.json.Decoder(Line)
_head = msgspec.json.Decoder(Head)
_content = msgspec.json.Decoder(tuple[Block, ...] | str | None)
_result = msgspec.json.Decoder(Result)


def decode(line: bytes) -> Line | Head:
    """One line; of an unknown kind, its head alone."""
    return decode_line(line, _line, head=_head)


def decode_content(message: Message) -> tuple[Block, ...]:
    """The blocks of a message, whichever way it is written."""
    content = decode_part(message.content, _content)
    if isinstance(content, str):
        return (Block("text", content),)
    return content or ()


def decode_result(result: msgspec.Raw) -> str:
    """The text of a tool's result; empty, if it has none."""
    try:
        return decode_part(result, _result).text
    except msgspec.MsgspecError:
        return ""
