"""The lines claude writes: known kinds are decoded once, unknown ones as far as their name."""

from __future__ import annotations

import json
from typing import TypeAlias

import msgspec
from msgspec import Raw

from takopi.engines.jsonl import decode_line, decode_part, tags_of


class Block(msgspec.Struct, frozen=True, gc=False):
    """A piece of a message: text, a tool call or its result. What a tool takes and gives varies."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    tool_use_id: str | None = None
    content: Raw = Raw()
    is_error: bool | None = None


class Message(msgspec.Struct, frozen=True, gc=False):
    content: list[Block] | str | None = None


class Assistant(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="assistant"):
    """What the model said. `error` marks the CLI's own words about a failed API call."""

    message: Message | None = None
    parent_tool_use_id: str | None = None
    error: str | None = None


class User(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="user"):
    """What the model was told, most of it tool results."""

    message: Message | None = None


class StreamEvent(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="stream_event"):
    """A fragment of a message that follows as a whole."""


class System(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="system"):
    """News of the CLI itself; which fields are there depends on `subtype`."""

    subtype: str = ""
    session_id: str | None = None
    model: str | None = None
    state: str | None = None
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None
    error: str | None = None
    tool_name: str | None = None
    tool_use_id: str | None = None
    message: str | None = None
    is_backgrounded: bool | None = None
    status: str | None = None
    summary: str | None = None
    content: str | None = None
    level: str | None = None


class RateLimit(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How much of a subscription's allowance is used; `resets_at` is in seconds since 1970."""

    status: str = ""
    resets_at: float | None = None
    rate_limit_type: str | None = None
    utilization: float | None = None


class RateLimitEvent(
    msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="rate_limit_event"
):
    rate_limit_info: RateLimit | None = None


class TurnUsage(msgspec.Struct, frozen=True, gc=False):
    """What the main conversation used in one turn, without its subagents."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class ModelUsage(msgspec.Struct, frozen=True, gc=False):
    """What one model used, subagents included."""

    input_tokens: int = msgspec.field(name="inputTokens", default=0)
    output_tokens: int = msgspec.field(name="outputTokens", default=0)
    cache_read_input_tokens: int = msgspec.field(name="cacheReadInputTokens", default=0)
    cache_creation_input_tokens: int = msgspec.field(name="cacheCreationInputTokens", default=0)
    cost_usd: float = msgspec.field(name="costUSD", default=0.0)


class Result(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="result"):
    """How a turn ended. `is_error` decides; `subtype` says "success" for a failed API call too."""

    subtype: str = ""
    is_error: bool = False
    result: str | None = None
    errors: list[str] | None = None
    num_turns: int | None = None
    terminal_reason: str | None = None
    total_cost_usd: float | None = None
    usage: TurnUsage | None = None
    model_usage_since_last_result: dict[str, ModelUsage] | None = None


class ControlRequest(
    msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="control_request"
):
    """The CLI waits for an answer to `request`."""

    request_id: str
    request: Raw = Raw()


class ControlCancel(
    msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="control_cancel_request"
):
    """The CLI no longer waits."""

    request_id: str


class ControlResponse(
    msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="control_response"
):
    """The CLI's receipt for a request of ours."""


Line: TypeAlias = (
    Assistant
    | User
    | StreamEvent
    | System
    | RateLimitEvent
    | Result
    | ControlRequest
    | ControlCancel
    | ControlResponse
)


class Request(msgspec.Struct, frozen=True, gc=False):
    """What a control request asks for. Only `can_use_tool` is for a person."""

    subtype: str = ""
    tool_name: str = ""
    tool_use_id: str | None = None
    input: Raw = Raw()
    permission_suggestions: list[dict[str, Raw]] | None = None
    suppress_always_allow_rule: bool | None = None
    decision_reason: str | None = None
    mcp_server_name: str | None = None


class Option(msgspec.Struct, frozen=True, gc=False):
    label: str
    description: str | None = None


class AskedQuestion(msgspec.Struct, frozen=True, gc=False):
    question: str
    header: str | None = None
    options: list[Option] | None = None
    several: bool | None = msgspec.field(name="multiSelect", default=None)


class AskedQuestions(msgspec.Struct, frozen=True, gc=False):
    """The input of the AskUserQuestion tool."""

    questions: list[AskedQuestion]


class Head(msgspec.Struct, frozen=True, gc=False):
    """As much of a line as tells its kind."""

    type: str
    subtype: Raw = Raw()

    @property
    def known(self) -> bool:
        if self.type != "system":
            return self.type in _TAGS
        return str(self.subtype, "utf-8", "replace").strip('"') in NEWS


class _Part(msgspec.Struct, frozen=True, gc=False):
    text: str | None = None


NEWS = frozenset({
    "api_retry",
    "compact_boundary",
    "informational",
    "init",
    "model_refusal_fallback",
    "permission_denied",
    "session_state_changed",
    "task_notification",
    "task_started",
})
"""The subtypes of `System` that mean something here; other ones may use its fields as they like."""

_TAGS = tags_of(Line)
_line: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
_head = msgspec.json.Decoder(Head)
_request = msgspec.json.Decoder(Request)
_questions = msgspec.json.Decoder(AskedQuestions)
_object = msgspec.json.Decoder(dict[str, object])
_shown: msgspec.json.Decoder[str | list[_Part]] = msgspec.json.Decoder(str | list[_Part])


def decode(line: bytes) -> Line | Head:
    """One line of stdout, or its head if it is of a kind that takopi has no use for."""
    try:
        return decode_line(line, _line, head=_head)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # JavaScript cuts strings inside a character and writes the half as \\ud83d: it cost the
        # answer, were it in the result.
        if b"\\ud" not in line:
            raise
    return decode_line(_mend_surrogates(line), _line, head=_head)


def decode_request(raw: Raw) -> Request:
    """What a control request asks for."""
    return decode_part(raw, _request)


def decode_questions(raw: Raw) -> tuple[AskedQuestion, ...]:
    """The questions of an AskUserQuestion call; none, if it is not shaped like one."""
    try:
        return tuple(decode_part(raw, _questions).questions)
    except msgspec.DecodeError:
        return ()


def decode_object(raw: Raw) -> dict[str, object]:
    """A tool's input by name; empty where it is no object."""
    try:
        return decode_part(raw, _object)
    except msgspec.DecodeError:
        return {}


def decode_shown(raw: Raw) -> str:
    """The text of a tool's result, which is a string or a list of parts."""
    try:
        shown = decode_part(raw, _shown)
    except msgspec.DecodeError:
        return ""
    if isinstance(shown, str):
        return shown
    return "\n".join(part.text for part in shown if part.text)


def _mend_surrogates(line: bytes) -> bytes:
    try:
        return json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(f"not JSON: {type(error).__name__}") from error
