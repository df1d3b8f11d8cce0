"""Engines that other packages bring: found by entry point, reported when they cannot be loaded.

An entry point of the group `takopi.engines` names an `EngineSpec`, for a CLI that speaks JSON
lines, or an `EnginePlugin`, for anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

import structlog

from takopi.config.schema import EngineSettings
from takopi.core.ids import EngineId
from takopi.core.ports import Engine
from takopi.engines.spec import EngineSpec

GROUP = "takopi.engines"
_ID = re.compile(r"[a-z][a-z0-9_]{0,31}")

S = TypeVar("S", bound=EngineSettings)
log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.engines")


@dataclass(frozen=True, slots=True)
class EnginePlugin(Generic[S]):
    """An engine that is no CLI of JSON lines. `make` gets the settings of its table.

    With the flavor `asyncio`, its `run` and the answer port it is given are coroutines of asyncio.
    """

    id: EngineId
    make: Callable[[S], Engine]
    settings_type: type[S]
    flavor: Literal["trio", "asyncio"] = "trio"
    asks: bool = False


Entry: TypeAlias = EngineSpec[Any] | EnginePlugin[Any]


@dataclass(frozen=True, slots=True)
class Broken:
    """A plugin that cannot be used, and why."""

    name: str
    reason: str


def load_plugins(
    taken: Collection[str], *, found: Iterable[EntryPoint] | None = None
) -> tuple[dict[EngineId, Entry], tuple[Broken, ...]]:
    """Every engine of the installed plugins whose id is free, and what is wrong with the others."""
    entries: dict[EngineId, Entry] = {}
    broken: list[Broken] = []
    for point in sorted(entry_points(group=GROUP) if found is None else found):
        try:
            entry = _checked(point.load(), {*taken, *entries})
        except Exception as error:  # a plugin may fail in any way it likes
            log.exception("plugin.broken", plugin=point.name)
            broken.append(Broken(point.name, f"{type(error).__name__}: {error}"))
        else:
            entries[entry.id] = entry
    return entries, tuple(broken)


def _checked(loaded: object, taken: Collection[str]) -> Entry:
    if not isinstance(loaded, EngineSpec | EnginePlugin):
        raise TypeError(f"{type(loaded).__name__} is neither an EngineSpec nor an EnginePlugin")
    entry = cast("Entry", loaded)
    if not _ID.fullmatch(entry.id):
        raise ValueError(f"{entry.id!r} is no name for an engine: use a-z, 0-9 and _")
    if entry.id in taken:
        raise ValueError(f"there is an engine {entry.id} already")
    entry.settings_type()  # every key needs a default: a table may be absent
    return entry
