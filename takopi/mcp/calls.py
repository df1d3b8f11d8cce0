"""Finds the tool calls in what an engine says, and what it says besides.

A call is JSON `{"tool_calls": [{"name": …, "arguments": {…}}]}`: the whole answer, all of a fence,
or an object that begins a line. What begins there as one and cannot be read is a call that fails;
anything else, however alike, is text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from takopi.core.tools import MCPToolCall

KEY = '"tool_calls"'
MAX_CALLS = 20
"""How many calls of one answer are looked at; the rest are refused together."""

UNREADABLE = MCPToolCall("", None)
"""Stands for what was meant to be calls."""

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)")
_OPENING = r"(?=\{\s*" + KEY + r"\s*:)"
_BARE = re.compile(rf"^[ \t]*{_OPENING}", re.MULTILINE)
_NEXT = re.compile(rf"\s*{_OPENING}")
_CUT = re.compile(f"(?:{'|'.join(re.escape(KEY[:size]) for size in range(2, len(KEY)))})…?$")
_BLANKS = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of text that is a list of calls: where it stands, and the calls."""

    start: int
    end: int
    calls: tuple[MCPToolCall, ...]


def parse_tool_calls(response: str) -> list[MCPToolCall]:
    """All calls of an answer, in order."""
    return [call for found in _find(response) for call in found.calls]


def text_around(response: str) -> str:
    """The answer without its calls."""
    kept: list[str] = []
    at = 0
    for found in _find(response):
        kept.append(response[at : found.start])
        at = found.end
    kept.append(response[at:])
    return "\n\n".join(part.strip() for part in kept if part.strip())


def mentions_calls(text: str) -> bool:
    """Whether a text, whose end may have been cut off, may hold calls."""
    return KEY in text or _CUT.search(text) is not None


def _find(response: str) -> list[Found]:
    if KEY not in response:
        return []
    whole = _read(response)
    if whole is not None:
        return [Found(0, len(response), whole)]
    # From here on, what begins as calls is either calls or broken.
    found: list[Found] = []
    bare_from = 0
    for start, end, body in _fences(response):
        found += _find_bare(response, bare_from, start)
        calls = _read(body)
        if calls is None and _NEXT.match(body):
            calls = (UNREADABLE,)
        if calls is not None:
            found.append(Found(start, end, calls))
        bare_from = end
    return [*found, *_find_bare(response, bare_from, len(response))]


def _fences(text: str) -> Iterator[tuple[int, int, str]]:
    """Every fenced block: where it begins and ends, and what is in it."""
    mark, opened_at, body_at, at = "", 0, 0, 0
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        start, at = at, at + len(line)
        if found is None:
            continue
        if not mark:
            if found["mark"][0] == "`" and "`" in found["info"]:
                continue  # a code span
            mark, opened_at, body_at = found["mark"], start, at
        elif found["mark"].startswith(mark) and not found["info"].strip():
            yield opened_at, at, text[body_at:start]
            mark = ""
    if mark:
        yield opened_at, len(text), text[body_at:]


def _find_bare(text: str, start: int, end: int) -> list[Found]:
    found: list[Found] = []
    match = _BARE.search(text, start, end)
    while match:
        calls, stop = _read_on(text, match.end())
        if stop == match.end() or stop > end:
            # Where it should have ended nobody knows.
            return [*found, Found(match.start(), end, (UNREADABLE,))]
        found.append(Found(match.start(), stop, tuple(calls)))
        match = _NEXT.match(text, stop, end) or _BARE.search(text, stop, end)
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _read(text: str) -> tuple[MCPToolCall, ...] | None:
    """The calls that a text is, if it is nothing else."""
    stripped = text.strip()
    calls, end = _read_on(stripped, 0)
    return tuple(calls) if end and end == len(stripped) else None


def _read_on(text: str, at: int) -> tuple[list[MCPToolCall], int]:
    """The calls of all objects in a row from there on, and where the last of them ends."""
    calls: list[MCPToolCall] = []
    end = at
    while text.startswith("{", at):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        more = _calls(value)
        if more is None:
            break
        calls += more
        end = at
        blanks = _BLANKS.match(text, at)
        at = blanks.end() if blanks else at
    return calls, end


def _calls(value: object) -> tuple[MCPToolCall, ...] | None:
    if not isinstance(value, dict):
        return None
    listed = cast("dict[str, Any]", value).get("tool_calls")
    if not isinstance(listed, list):
        return None
    return tuple(map(_call, cast("list[object]", listed)))


def _call(entry: object) -> MCPToolCall:
    """An entry that is not one is still a call, which then fails and is told so."""
    if not isinstance(entry, dict):
        return MCPToolCall("", entry)
    fields = cast("dict[str, Any]", entry)
    name = fields.get("name")
    named = name.encode(errors="replace").decode() if isinstance(name, str) else ""
    return MCPToolCall(named, fields.get("arguments", {}))
