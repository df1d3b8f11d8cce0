"""A card in the Bot API's words, within its limits: text, entities and an inline keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from takopi.core.outgoing import Button, Mark, MarkKind, Text

MAX_UNITS = 4096
MAX_CAPTION_UNITS = 1024
REPEATED = "(repeated)\n"
"""Stands before what may have arrived already."""

_ENTITIES: dict[MarkKind, str] = {
    "bold": "bold",
    "italic": "italic",
    "underline": "underline",
    "strikethrough": "strikethrough",
    "spoiler": "spoiler",
    "code": "code",
    "pre": "pre",
    "link": "text_link",
    "quote": "blockquote",
}


def entities(text: Text) -> list[dict[str, Any]] | None:
    """The marks of a text; None when it has none."""
    return [_entity(mark) for mark in text.marks] or None


def keyboard(rows: Sequence[Sequence[Button]]) -> dict[str, Any] | None:
    """The buttons below a message; None when there are none."""
    shown = [
        [{"text": sound(button.label), "callback_data": button.data} for button in row]
        for row in rows
        if row
    ]
    return {"inline_keyboard": shown} if shown else None


def sound(text: str) -> str:
    """The text without halves of surrogate pairs, which no JSON holds; every offset stays.

    They come from file names that are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def repeated(text: Text) -> Text:
    """The same text, marked as one that may have arrived before."""
    by = len(REPEATED)
    marks = tuple(Mark(m.kind, m.offset + by, m.length, m.extra) for m in text.marks)
    return Text(REPEATED + text.text, marks)


def caption(text: Text) -> Text:
    """As much of the text as a caption holds."""
    shown = cut(text.text, MAX_CAPTION_UNITS)
    if len(shown) == len(text.text):
        return Text(shown, text.marks)
    units = len(shown.encode("utf-16-le")) // 2 - len("…")
    marks = tuple(
        Mark(m.kind, m.offset, min(m.length, units - m.offset), m.extra)
        for m in text.marks
        if m.offset < units
    )
    return Text(shown, marks)


def cut(text: str, max_units: int) -> str:
    """The text, or as much of its beginning as fits, with a sign that it goes on."""
    text = sound(text)
    data = text.encode("utf-16-le")
    if len(data) <= max_units * 2:
        return text
    # Half of a surrogate pair at the cut is left out.
    return data[: (max_units - 1) * 2].decode("utf-16-le", errors="ignore") + "…"


def _entity(mark: Mark) -> dict[str, Any]:
    entity: dict[str, Any] = {
        "type": _ENTITIES[mark.kind],
        "offset": mark.offset,
        "length": mark.length,
    }
    if mark.kind == "link":
        entity["url"] = mark.extra
    if mark.kind == "pre" and mark.extra:
        entity["language"] = mark.extra
    return entity
