"""Cuts a long text into messages: nothing but the spaces at the cuts is lost, and marks go on.

A cut is made between paragraphs or at the edge of a code block; where that would leave a message
too empty, between lines, then between words, then between characters.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from takopi.core.outgoing import Mark, Text
from takopi.present.compose import EMPTY, stack
from takopi.present.marks import settle, thin
from takopi.present.units import is_inside_pair, length, narrow, widen

MIN_UNITS = 2
"""Room for any one character."""

MAX_MARKS = 100
"""A chat ignores the marks of a message beyond these, so the footer's must be among them."""

# A message is at least this full before a coarser cut is preferred to a finer one.
_LEAST_FILL = 1 / 3
# How far a cut between characters goes back to keep together what is shown as one.
_MAX_CLUSTER = 64


def split(text: Text, max_units: int) -> tuple[Text, ...]:
    """The text as messages of at most `max_units`, at least one; only an empty text makes a blank.

    A code block that is cut goes on in the next message with its language.
    """
    if max_units < MIN_UNITS:
        raise ValueError(f"a message of {max_units} units cannot hold every character")
    wide = widen(text.text)
    if len(wide) <= max_units:
        return (text,)
    blocks = [(m.offset, m.offset + m.length) for m in text.marks if m.kind == "pre"]
    return tuple(_slices(wide, text.marks, _ranges(wide, blocks, max_units))) or (EMPTY,)


def parts(body: Text, footer: Text, max_units: int, *, tail: Text = EMPTY) -> tuple[Text, ...]:
    """The body as messages that all end with the footer, and say `(2/3)` where there are several.

    `tail` stands under the body, in the last message. A footer that would leave no room is shown
    once, after the body.
    """
    below = stack([tail, footer])
    most = max(MAX_MARKS - len(below.marks), 0)
    if length(body.text) + len("\n\n") + length(below.text) <= max_units:
        return (stack([thin(body, most), below], "\n\n"),)
    # There are never more messages than there are units.
    label = len("\n\n(/)\n") + 2 * len(str(length(body.text)))
    room = max_units - length(below.text) - label
    if room < max_units // 2:
        return split(stack([body, below], "\n\n"), max_units)
    pieces = [thin(piece, most) for piece in split(body, room)]
    total = len(pieces)
    return tuple(
        stack(
            [piece, stack([tail if index == total else EMPTY, f"({index}/{total})", footer])],
            "\n\n",
        )
        for index, piece in enumerate(pieces, 1)
    )


def _ranges(
    wide: str, blocks: Sequence[tuple[int, int]], max_units: int
) -> Iterator[tuple[int, int]]:
    start = _skip_spaces(wide, 0, blocks)
    while len(wide) - start > max_units:
        end = _find_cut(wide, start, start + max_units, blocks)
        if wide[start:end].strip():
            yield start, end
        if _block_around(blocks, end) is None:
            start = _skip_spaces(wide, end, blocks)
        else:
            # Inside a code block a line keeps its indentation.
            start = end + (wide[end] == " ")
            while start < len(wide) and wide[start] == "\n":
                start += 1
    if wide[start:].strip():
        yield start, len(wide)


def _find_cut(wide: str, start: int, limit: int, blocks: Sequence[tuple[int, int]]) -> int:
    least = start + max(int((limit - start) * _LEAST_FILL), 1)
    paragraph = max(_paragraph_end(wide, least, limit, blocks), _block_edge(blocks, least, limit))
    if paragraph >= 0:
        return paragraph
    for gap in ("\n", " "):
        found = wide.rfind(gap, least, limit + 1)
        if found >= 0:
            return found
    return _between_characters(wide, start, limit)


def _paragraph_end(wide: str, least: int, limit: int, blocks: Sequence[tuple[int, int]]) -> int:
    end = limit + 2
    while (found := wide.rfind("\n\n", least, end)) >= 0:
        block = _block_around(blocks, found)
        if block is None:
            return found
        # The next one to look at ends where this code block begins.
        end = block[0]
    return -1


def _block_edge(blocks: Sequence[tuple[int, int]], least: int, limit: int) -> int:
    """The last edge of a code block that lies between the two."""
    index = bisect_left(blocks, (limit + 1,)) - 1
    if index < 0:
        return -1
    first, end = blocks[index]
    edge = end if end <= limit else first
    return edge if edge >= least else -1


def _block_around(blocks: Sequence[tuple[int, int]], at: int) -> tuple[int, int] | None:
    """The code block that a cut at `at` would part."""
    index = bisect_left(blocks, (at,)) - 1
    return blocks[index] if index >= 0 and at < blocks[index][1] else None


def _skip_spaces(wide: str, start: int, blocks: Sequence[tuple[int, int]]) -> int:
    while start < len(wide) and wide[start].isspace():
        index = bisect_left(blocks, (start,))
        if index < len(blocks) and blocks[index][0] == start:
            break
        start += 1
    return start


def _between_characters(wide: str, start: int, limit: int) -> int:
    for cut in range(limit, max(limit - _MAX_CLUSTER, start), -1):
        if not _is_joined(wide, cut, start):
            return cut
    return limit - is_inside_pair(wide, limit)


def _is_joined(wide: str, at: int, start: int) -> bool:
    """Whether what stands before and after is shown as one: a letter and its accents, an emoji."""
    if at >= len(wide):
        return False
    before, after = wide[at - 1], wide[at]
    if is_inside_pair(wide, at) or before == "\u200d" or after == "\u200d":
        return True
    if unicodedata.category(after)[0] == "M":
        return True
    follower = wide[at : at + 2]
    if "\ud83c\udffb" <= follower <= "\ud83c\udfff" or after == "\udb40":
        # A tone of skin, or a tag of a flag.
        return True
    return _is_regional(follower) and _regionals_between(wide, start, at) % 2 == 1


def _is_regional(pair: str) -> bool:
    return len(pair) == MIN_UNITS and "\ud83c\udde6" <= pair <= "\ud83c\uddff"


def _regionals_between(wide: str, start: int, at: int) -> int:
    """How many halves of flags stand before `at` in a row: two of them are one flag."""
    found = 0
    while at - 2 >= start and _is_regional(wide[at - 2 : at]):
        found += 1
        at -= 2
    return found


def _slices(wide: str, marks: Sequence[Mark], ranges: Iterator[tuple[int, int]]) -> Iterator[Text]:
    """Each range as a text; a mark that goes beyond it goes on in the next."""
    waiting = iter(marks)
    upcoming = next(waiting, None)
    open_marks: list[Mark] = []
    for start, end in ranges:
        while upcoming is not None and upcoming.offset < end:
            open_marks.append(upcoming)
            upcoming = next(waiting, None)
        clipped = [
            Mark(mark.kind, first - start, last - first, mark.extra)
            for mark in open_marks
            if (first := max(mark.offset, start)) < (last := min(mark.offset + mark.length, end))
        ]
        yield settle(narrow(wide[start:end]), clipped)
        open_marks = [mark for mark in open_marks if mark.offset + mark.length > end]
