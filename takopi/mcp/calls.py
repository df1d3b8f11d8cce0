"""Finds the tool calls in what an engine says, and what it says besides.

A call is JSON `{"tool_calls": [{"name": …, "arguments": {…}}]}`: the whole answer, all of a fence,
or an object that begins a line. Anything else, however alike, is text.
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
"""How many calls of one answer are looked at; the rest are refused, one by one."""

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)")
_BARE = re.compile(r"^[ \t]*(?=\{\s*" + KEY + r"\s*:)", re.MULTILINE)


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
    """Whether a text, which may have been cut anywhere, may hold calls."""
    return KEY in text


def _find(response: str) -> list[Found]:
    if KEY not in response:
        return []
    whole = _read(response)
    if whole is not None:
        return [Found(0, len(response), whole)]
    found: list[Found] = []
    bare_from = 0
    for start, end, body in _fences(response):
        found += _find_bare(response, bare_from, start)
        calls = _read(body)
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
    at = start
    for match in _BARE.finditer(text, start, end):
        if match.start() < at:
            continue
        try:
            value, stop = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        calls = _calls(value)
        if calls is not None and stop <= end:
            found.append(Found(match.start(), stop, calls))
            at = stop
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _read(text: str) -> tuple[MCPToolCall, ...] | None:
    """The calls that a text is, if it is nothing else."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        return None
    try:
        value, end = _DECODER.raw_decode(stripped)
    except (ValueError, RecursionError):
        return None
    return _calls(value) if end == len(stripped) else None


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
