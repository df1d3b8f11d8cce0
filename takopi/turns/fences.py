"""Corrects the code fences of a plan; a plan that is sound stays as it is, byte for byte.

A model that puts a file with code fences into a fence of the same length has written something
else than it meant. What it meant is seen from what follows: a block of a plan ends where the end,
a section, an action or a FIND or REPLACE comes next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from takopi.turns.blocks import bare, split_lines
from takopi.turns.grammar import MARKER, action_kind, parse, section_name
from takopi.turns.plan import Plan

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*(.*?)[ \t]*")
_HEADING = re.compile(r"(#{1,6})[ \t]*(.*)")
_TITLE = re.compile(r"# ?[^#\s].*")
_WRAPPERS = frozenset({"", "markdown", "md"})
_FREE = frozenset({"CHAT_WITH_USER", "INVOKE", "CONCLUDE", "RESEARCH"})


def correct(text: str) -> str:
    """The text with fences that mean what was meant; doing it twice changes nothing more."""
    text = _normal(text)
    if isinstance(parse(text), Plan):
        return text
    spaced = "".join(_spaced(_unwrapped(split_lines(text))))
    balanced = _refenced(spaced, balance=True)
    if isinstance(parse(balanced), Plan):
        return balanced
    nearest = _refenced(spaced, balance=False)
    return nearest if isinstance(parse(nearest), Plan) else balanced


def _normal(text: str) -> str:
    """Without a byte order mark, and with plain line ends if the text was saved with others."""
    text = text.lstrip("\ufeff")
    first = re.search(r"\r\n|\r|\n", text)
    return re.sub(r"\r\n?", "\n", text) if first and first[0] != "\n" else text


def _unwrapped(lines: list[str]) -> list[str]:
    """Without what was said before the title, and without a fence around the whole."""
    top = next((n for n, line in enumerate(lines) if _TITLE.fullmatch(bare(line))), None)
    if top is None:
        return lines
    before = [line for line in lines[:top] if line.strip()]
    wrapper = _FENCE.fullmatch(bare(before[-1])) if before else None
    rest = lines[top:]
    if wrapper and wrapper[3].lower() in _WRAPPERS:
        last = next(n for n in range(len(rest) - 1, -1, -1) if rest[n].strip())
        closing = _FENCE.fullmatch(bare(rest[last]))
        if closing and not closing[3] and closing[2][0] == wrapper[2][0]:
            rest = rest[:last]
    return rest


def _spaced(lines: list[str]) -> list[str]:
    """With a blank between the marks and the words of the headings that make a plan."""
    return [_space(line, first=number == 0) for number, line in enumerate(lines)]


def _space(line: str, *, first: bool) -> str:
    found = _HEADING.fullmatch(bare(line))
    if not found or line[len(found[1])].isspace():
        return line
    if (first and len(found[1]) == 1) or _opens(found[1], found[2]):
        return f"{found[1]} {line[len(found[1]) :]}"
    return line


def _opens(marks: str, words: str) -> bool:
    section = len(marks) == 2 and section_name(words) is not None
    return section or (len(marks) == 3 and action_kind(words) is not None)


@dataclass(frozen=True, slots=True)
class _Span:
    """A fence that needs to be longer: its first and its last line, and its marks."""

    start: int
    end: int
    marks: str


def _refenced(text: str, *, balance: bool) -> str:
    lines = split_lines(text)
    spans: list[_Span] = []
    number, free = 0, False
    while number < len(lines):
        line = bare(lines[number])
        if heading := _HEADING.fullmatch(line):
            if _opens(heading[1], heading[2]):
                free = action_kind(heading[2]) in _FREE
        elif opening := _FENCE.fullmatch(line):
            end = _plain_end(lines, number, marks=opening[2])
            if not free and not _certain(lines, number, end, marks=opening[2]):
                meant = _meant_end(lines, number, balance=balance)
                if meant is not None:
                    spans.append(_Span(number, meant, opening[2]))
                    end = meant
            if end is None:
                break
            number = end
        number += 1
    for span in spans:
        _lengthen(lines, span)
    return "".join(lines)


def _plain_end(lines: list[str], start: int, *, marks: str) -> int | None:
    """Where the fence ends by the letter of CommonMark."""
    for number in range(start + 1, len(lines)):
        found = _FENCE.fullmatch(bare(lines[number]))
        if found and not found[3] and found[2][0] == marks[0] and len(found[2]) >= len(marks):
            return number
    return None


def _certain(lines: list[str], start: int, end: int | None, *, marks: str) -> bool:
    """Whether a fence can only end there: no other opens inside it, and something new follows."""
    if end is None or not _closes(lines, end):
        return False
    inside = (_FENCE.fullmatch(bare(line)) for line in lines[start + 1 : end])
    return not any(one and one[3] and len(one[2]) >= len(marks) for one in inside)


def _meant_end(lines: list[str], start: int, *, balance: bool) -> int | None:
    """Where the fence ends by what follows; with `balance`, fences inside it are counted."""
    depth, fallback = 0, None
    for number in range(start + 1, len(lines)):
        found = _FENCE.fullmatch(bare(lines[number]))
        if not found:
            continue
        if found[3]:
            depth += 1
        elif _closes(lines, number) and (depth == 0 or not balance):
            return number
        elif depth:
            if fallback is None and _closes(lines, number):
                fallback = number
            depth -= 1
    return fallback


def _closes(lines: list[str], number: int) -> bool:
    """Whether what comes after this line begins something new in the plan."""
    following = (bare(line) for line in lines[number + 1 :])
    after = next((line for line in following if line.strip(" \t-")), None)
    if after is None or MARKER.fullmatch(after):
        return True
    heading = _HEADING.fullmatch(after)
    return heading is not None and _opens(heading[1], heading[2])


def _lengthen(lines: list[str], span: _Span) -> None:
    inside = "".join(lines[span.start + 1 : span.end])
    runs = re.findall(r"`+" if span.marks[0] == "`" else r"~+", inside)
    marks = span.marks[0] * max(len(span.marks), 1 + max(map(len, runs), default=2))
    for number in (span.start, span.end):
        lines[number] = re.sub(r"`{3,}|~{3,}", marks, lines[number], count=1)
