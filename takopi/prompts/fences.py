"""Puts a fence around text of others that nothing inside it can close."""

from __future__ import annotations

import re

_BACKTICKS = re.compile(r"`+")


def fence(text: str, info: str = "text") -> str:
    """`text` between fences that are longer than any run of backticks in it."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    mark = "`" * max(3, longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{mark}{info}\n{text}{end}{mark}"
