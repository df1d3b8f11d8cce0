"""What drafts need of the rest of takopi, handed to them by whoever puts it together."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Voice
from takopi.core.outgoing import Outgoing
from takopi.core.ports import Transport
from takopi.drafts.master import Master
from takopi.drafts.tmux import Tmux
from takopi.store.database import Database


class Start(Protocol):
    """Starts a run."""

    async def __call__(
        self,
        scope: Scope,
        words: str,
        *,
        prompt: str,
        card: MessageRef | None,
        also: Callable[[sqlite3.Connection], bool],
    ) -> str | None:
        """Start it in the same transaction as `also`, and not at all where that says no.

        `words` are the directives it is started with. Returns what was started, in a few words.
        """
        ...


class Put(Protocol):
    """Lets a message wait in the store's outbox."""

    def __call__(
        self,
        conn: sqlite3.Connection,
        scope: Scope,
        message: Outgoing,
        *,
        key: str | None = None,
    ) -> None:
        """Put it there, with whatever else this transaction does, once under each key."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The parts of the daemon that drafts use.

    `split` parts an input into its directives
    and the rest, `place` says where a draft with such directives would go: both refuse what
    cannot be had. `hear` writes a voice note down, under a deadline of its own.
    """

    db: Database
    transport: Callable[[Scope], Transport]
    put: Put
    master: Master
    tmux: Tmux
    hear: Callable[[Scope, Voice], Awaitable[str]]
    is_admin: Callable[[Scope, int], Awaitable[bool]]
    split: Callable[[Scope, str], tuple[str, str]]
    place: Callable[[Scope, str], Awaitable[str]]
    start: Start
