"""A name that somebody else chose becomes one that is a plain file in any folder, or a stand-in."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import count

MAX_BYTES = 120
"""Far below what a file system takes, so that a number still fits behind the name."""

STAND_IN = "file"

_RESERVED = frozenset({"con", "prn", "aux", "nul"}) | {
    f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)
}
# Special to shells, to other systems, or to who reads the name in a prompt.
_SPECIAL = frozenset("/\\:*?\"<>|`$&;!'")


def safe_name(name: str) -> str:
    """The name without folders, control characters and whatever has a meaning of its own.

    It never begins with a dot or a dash, is never empty, and keeps its ending where it has a short
    one.
    """
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = "".join(_plain(char) for char in unicodedata.normalize("NFC", last))
    clean = " ".join(clean.split()).lstrip(".-~ ").rstrip(". ")
    stem, ending = _split(clean)
    if not stem.strip("_. "):
        stem = STAND_IN
    if stem.partition(".")[0].lower() in _RESERVED:
        stem = f"{STAND_IN}-{stem}"
    return _cut(stem, MAX_BYTES - len(ending.encode())).rstrip(". ") + ending


def numbered(name: str) -> Iterator[str]:
    """The name, then the name with a number before its ending, without end."""
    stem, ending = _split(name)
    yield name
    for number in count(2):
        yield f"{stem}-{number}{ending}"


def _plain(char: str) -> str:
    if char in _SPECIAL:
        return "_"
    # Control and format characters hide what a name is; line ends and half characters are none.
    return "" if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} else char


def _split(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or not 1 <= len(ending) <= 16 or not ending.isalnum():
        return name, ""
    if len(ending.encode()) > 32:
        return name, ""
    return stem, f".{ending}"


def _cut(text: str, max_bytes: int) -> str:
    return text.encode()[:max_bytes].decode(errors="ignore")
