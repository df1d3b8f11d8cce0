"""Counts and cuts text in UTF-16 units, as chats do, and never inside a surrogate pair.

`widen` gives a string whose every character is one unit, so that offsets are indices; `narrow`
turns such a string, or any slice of it, back into text that can be encoded.
"""

from __future__ import annotations

import re

_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def length(text: str) -> int:
    """How many UTF-16 units `text` has."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def widen(text: str) -> str:
    """`text` with every character beyond the first 65,536 as its two surrogates."""
    if length(text) == len(text):
        return text
    return _ASTRAL.sub(_pair, text)


def narrow(wide: str) -> str:
    """The text that `wide` stands for; half a pair becomes U+FFFD, which is one unit as well."""
    if wide.isascii() or not _SURROGATE.search(wide):
        return wide
    return wide.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_inside_pair(wide: str, index: int) -> bool:
    """Whether a cut before `index` would part two surrogates that belong together."""
    return 0 < index < len(wide) and "\udc00" <= wide[index] <= "\udfff"


def _pair(match: re.Match[str]) -> str:
    code = ord(match[0]) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))
