"""Makes any text fit where one line is shown, at a cost that does not grow with the text."""

from __future__ import annotations

import re

_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def one_line(text: str, max_chars: int) -> str:
    """`text` on one line of at most `max_chars`; an ellipsis stands for what is missing."""
    text = text.strip()
    start = text[: max_chars * 4 + 64]
    line = " ".join((start if start.isprintable() else _UNSEEN.sub(" ", start)).split())
    if len(start) == len(text) and len(line) <= max_chars:
        return line
    return line[: max_chars - 1].rstrip() + "…"
