"""Reads the `- **Key:** value` lines of a plan, as people and models really write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from takopi.turns.blocks import Block, bare

MAX_TIMEOUT_S = 3600.0

_KEY = re.compile(r"[-*+][ \t]+(?:\*\*)?([A-Za-z][A-Za-z _]*?)(?::\*\*|\*\*:|:)[ \t]*(.*)")
_ITEM = re.compile(r"[ \t]+[-*+][ \t]+(.*)")
_LINK = re.compile(r"\[[^\[\]]*\]\(<?([^<>]*?)>?\)")
_ENV = re.compile(r"`?([A-Za-z_][A-Za-z0-9_]*)[ \t]*[=:][ \t]?(.*?)`?")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)[ \t]*(?:s|sec|seconds?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One key: as it was written, its value, the items of a list under it, its line from 0."""

    name: str
    value: str
    items: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys by their lower-case names; `rest` is the first line that is none.

    `twice` is the line of a key that was there before.
    """

    found: Mapping[str, Entry]
    rest: int
    twice: int | None = None

    def get(self, name: str) -> str:
        """The value of a key, empty if it is not there."""
        entry = self.found.get(name)
        return entry.value if entry else ""

    def items(self, name: str) -> tuple[str, ...]:
        """The values of a key that takes several: in a list under it, or parted by commas."""
        entry = self.found.get(name)
        if entry is None:
            return ()
        inline = [part.strip() for part in entry.value.split(",")] if not entry.items else []
        return tuple(one for one in (*inline, *entry.items) if one)


def read_keys(lines: list[str], block: Block, *, known: frozenset[str] | None) -> Keys:
    """The keys at the start of a list; with `known`, only those count as keys."""
    found: dict[str, Entry] = {}
    number, twice = block.start, None
    while number < block.end:
        line = bare(lines[number])
        match = _KEY.fullmatch(line.strip()) if not line[:1].isspace() else None
        if match is None or (known is not None and match[1].lower() not in known):
            if line.strip():
                break
            number += 1
            continue
        start, value, items = number, match[2].strip(), list[str]()
        number += 1
        while number < block.end and (more := bare(lines[number]))[:1] in {" ", "\t"}:
            if item := _ITEM.fullmatch(more):
                items.append(item[1].strip())
            elif more.strip():
                value = f"{value} {more.strip()}".strip()
            number += 1
        if match[1].lower() in found:
            twice = start
        found[match[1].lower()] = Entry(match[1], value, tuple(items), start)
    return Keys(found, number, twice)


def read_path(value: str) -> str:
    """The path that a value names: a link's target counts, and `/` there is the root."""
    if link := _LINK.fullmatch(value):
        return link[1].strip().removeprefix("/")
    if len(value) > 2 and value[0] == value[-1] == "`":
        return value[1:-1].strip()
    return value


def read_env(items: tuple[str, ...]) -> dict[str, str]:
    """Variables from `NAME=value` items; `ValueError` with the item that is none."""
    env: dict[str, str] = {}
    for item in items:
        found = _ENV.fullmatch(item)
        if found is None:
            raise ValueError(item)
        env[found[1]] = found[2]
    return env


def read_timeout(value: str) -> float | None:
    """Seconds, None if there is no value; `ValueError` if it is no usable number of them."""
    if not value:
        return None
    found = _SECONDS.fullmatch(value)
    seconds = float(found[1]) if found else 0.0
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise ValueError(value)
    return seconds
