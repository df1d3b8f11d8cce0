"""Draws a table in letters of one width, its columns aligned by how wide characters are shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import starmap
from typing import Literal

Align = Literal["left", "center", "right"]

# A cell that is longer sticks out of its column, so that it does not widen every other row.
MAX_COLUMN = 48

_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"


def draw(rows: Sequence[Sequence[str]], aligns: Sequence[Align]) -> str:
    """The rows as lines, the first one underlined as their head."""
    widths = [0] * len(aligns)
    for row in rows:
        for column, cell in enumerate(row[: len(widths)]):
            widths[column] = max(widths[column], min(shown_width(cell), MAX_COLUMN))
    lines = [_line(row, aligns, widths) for row in rows]
    lines.insert(1, "─┼─".join("─" * width for width in widths))
    return "\n".join(lines)


def shown_width(text: str) -> int:
    """How many columns `text` takes where all letters have one width."""
    if text.isascii():
        return len(text)
    width = 0
    before = ""
    for char in text:
        if before == _JOINER or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
            # A narrow sign that is asked to look like an emoji becomes as wide as one.
            width += char == _EMOJI_STYLE and len(before) == _width(before) == 1
        else:
            width += _width(char)
        before = char
    return width


def _width(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _line(row: Sequence[str], aligns: Sequence[Align], widths: Sequence[int]) -> str:
    shown = list(row)
    while shown and not shown[-1]:
        shown.pop()
    return " │ ".join(starmap(_pad, zip(shown, aligns, widths, strict=False))).rstrip()


def _pad(cell: str, align: Align, width: int) -> str:
    space = max(width - shown_width(cell), 0)
    match align:
        case "left":
            return cell + " " * space
        case "right":
            return " " * space + cell
        case "center":
            return " " * (space // 2) + cell + " " * (space - space // 2)
