"""Which paths nobody gets and nobody writes, whatever else is allowed.

A pattern without a slash means a file or folder of that name anywhere, with everything below it.
One with a slash is a path from the folder on, with everything below it. `*` stands for anything but
a slash, `**` for any number of folders, and alone for everything. Case does not matter: on some
disks it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def is_denied(parts: Sequence[str], patterns: Iterable[str]) -> bool:
    """Whether a path, given as its parts from the folder on, is one of those."""
    path = "/".join(parts).casefold()
    return any(_compiled(pattern.casefold()).match(path) for pattern in patterns)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    anywhere = "/" not in pattern.strip("/")
    front = "(?:.*/)?" if anywhere else ""
    # `a/**` is everything below `a`, and `a` alone says that already.
    while len(parts) > 1 and parts[-1] == "**":
        parts.pop()
    if parts == ["**"]:
        return re.compile(r"")
    middle = "".join("(?:[^/]+/)*" if part == "**" else f"{_part(part)}/" for part in parts)
    return re.compile(f"{front}{middle.removesuffix('/')}(?:/|$)", re.DOTALL)


def _part(part: str) -> str:
    words = {"*": "[^/]*", "?": "[^/]"}
    return "".join(words.get(char, re.escape(char)) for char in part)
