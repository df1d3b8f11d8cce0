"""What turns in a chat need of the rest of takopi, handed to them by whoever puts it together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from takopi.core.ids import Scope
from takopi.core.ports import Transport
from takopi.store.database import Database
from takopi.turns.actions import Bench
from takopi.turns.service import Ask, Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The parts of the daemon that turns use. `ask` has a deadline of its own."""

    db: Database
    transport: Callable[[Scope], Transport | None]
    is_admin: Callable[[Scope, int], Awaitable[bool]]
    ask: Ask
    rules: Callable[[], Rules]
    bench: Callable[[Path], Bench]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where people talk about a session, and the folder that it is held in; `words` name that."""

    scope: Scope
    root: Path
    words: str = ""
