"""What an interview needs of the rest of takopi, which is above it or beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from takopi.config.loaded import Config
from takopi.core.ids import EngineId, Scope
from takopi.core.outgoing import Outgoing
from takopi.core.ports import Transport
from takopi.interview.session import Order, Session


class Host(Protocol):
    """What an interview needs of the rest of takopi."""

    def config(self) -> Config:
        """The config as it is now."""
        ...

    def transport(self, scope: Scope) -> Transport | None:
        """Where the people of this scope are; None if that is not there any more."""
        ...

    def takes_system(self, engine: EngineId) -> bool:
        """Whether this engine takes an instruction beside the prompt, in no thread of its own."""
        ...

    async def find_cwd(self, order: Order) -> Path:
        """The folder that the order is done in; its worktree is made if it is missing."""
        ...

    async def find_branch(self, order: Order, cwd: Path) -> str:
        """The branch that is worked on there; empty if there is none."""
        ...

    async def start(self, session: Session, prompt: str, *, said: Outgoing) -> None:
        """Start the run of this session and say so, under its end key and only once."""
        ...
