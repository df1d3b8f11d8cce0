"""The chat's command menu: only names that the Bot API takes, and never more than it takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_ITEMS = 100
MAX_DESCRIPTION = 256

_NAME = re.compile(r"[a-z0-9_]{1,32}")


@dataclass(frozen=True, slots=True)
class MenuItem:
    """One line: a command without its slash, and what it does."""

    name: str
    description: str


def build_menu(
    commands: Mapping[str, str], *, engines: Iterable[str], aliases: Iterable[str]
) -> tuple[MenuItem, ...]:
    """Commands with what they do, then engines, then projects; what cannot be shown is left out."""
    wanted = [
        *commands.items(),
        *((engine, f"Ask {engine}") for engine in engines),
        *((alias, f"Work in {alias}") for alias in aliases),
    ]
    items: dict[str, MenuItem] = {}
    for name, what in wanted:
        # Directives are read in any case, and the menu knows lower case only.
        shown = name.lower()
        if _NAME.fullmatch(shown) and shown not in items:
            items[shown] = MenuItem(shown, (what.strip() or shown)[:MAX_DESCRIPTION])
    return tuple(items.values())[:MAX_ITEMS]
