"""Makes marks that every chat accepts out of spans that nest like brackets.

In the result marks lie inside the text, are sorted, nest properly, cover something visible and
neither begin nor end with a space (but for `pre`, whose indentation counts). Nothing is inside
`code` or `pre`, and these are inside a `quote` at most; quotes and links are not inside their like.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from takopi.core.outgoing import Mark, MarkKind, Text
from takopi.present.units import narrow, widen

_SOLID: frozenset[MarkKind] = frozenset({"code", "pre", "link"})
_BARE: frozenset[MarkKind] = frozenset({"code", "pre"})
_WEIGHT: dict[MarkKind, int] = {"pre": 0, "quote": 0, "link": 0, "code": 1}
_ORDER: dict[MarkKind, int] = {
    "quote": 0,
    "link": 1,
    "bold": 2,
    "italic": 3,
    "underline": 4,
    "strikethrough": 5,
    "spoiler": 6,
    "code": 7,
    "pre": 8,
}


def settle(text: str, spans: Iterable[Mark]) -> Text:
    """`text` without spaces at its end, with `spans` as valid marks.

    Spans may leave the text, be empty and repeat; two that overlap have one inside the other.
    """
    wide = widen(text).rstrip()
    trimmed = [mark for span in spans if (mark := _trim(span, wide)) is not None]
    if not trimmed:
        return Text(narrow(wide))
    trimmed.sort(key=_place)
    outermost = list(_without_repeats(trimmed))
    bare = [mark for mark in outermost if mark.kind in _BARE]
    pieces = [
        piece
        for mark in outermost
        for piece in ((mark,) if mark.kind in _SOLID or not bare else _around(mark, bare))
    ]
    marks = [mark for piece in pieces if (mark := _trim(piece, wide)) is not None]
    marks.sort(key=_place)
    return Text(narrow(wide), tuple(marks))


def shift(marks: Iterable[Mark], by: int) -> Iterable[Mark]:
    """The same marks, `by` units further on."""
    if not by:
        return marks
    return [Mark(mark.kind, mark.offset + by, mark.length, mark.extra) for mark in marks]


def thin(text: Text, max_marks: int) -> Text:
    """The text with at most so many marks: blocks and links stay, then code, then styles."""
    if len(text.marks) <= max_marks:
        return text
    weighty = sorted(text.marks, key=lambda mark: _WEIGHT.get(mark.kind, 2))
    return Text(text.text, tuple(sorted(weighty[:max_marks], key=_place)))


def _place(mark: Mark) -> tuple[int, int, int]:
    return mark.offset, -mark.length, _ORDER[mark.kind]


def _trim(span: Mark, wide: str) -> Mark | None:
    start = max(span.offset, 0)
    covered = wide[start : max(span.offset + span.length, start)]
    visible = covered.strip()
    if not visible:
        return None
    if span.kind != "pre":
        start += len(covered) - len(covered.lstrip())
        covered = visible
    if start == span.offset and len(covered) == span.length:
        return span
    return Mark(span.kind, start, len(covered), span.extra)


def _without_repeats(ordered: list[Mark]) -> Iterable[Mark]:
    """Leave out what is inside its like, and what a link, a code or a pre cannot hold."""
    ends: dict[MarkKind, int] = {}
    solid_end = bare_end = 0
    for mark in ordered:
        end = mark.offset + mark.length
        if mark.offset < bare_end or mark.offset < ends.get(mark.kind, 0):
            continue
        if mark.kind in _SOLID:
            if mark.offset < solid_end:
                continue
            solid_end = end
        if mark.kind in _BARE:
            bare_end = end
        ends[mark.kind] = end
        yield mark


def _around(mark: Mark, bare: list[Mark]) -> Iterable[Mark]:
    """A style goes on after a code inside it, but does not cover it; a quote holds everything."""
    if mark.kind == "quote":
        yield mark
        return
    start, end = mark.offset, mark.offset + mark.length
    index = bisect_left(bare, start, key=lambda hole: hole.offset)
    while index < len(bare) and bare[index].offset < end:
        hole = bare[index]
        yield Mark(mark.kind, start, hole.offset - start, mark.extra)
        start = hole.offset + hole.length
        index += 1
    yield Mark(mark.kind, start, end - start, mark.extra)
