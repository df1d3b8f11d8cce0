"""What an answer may become besides being shown: a feature looks at it first, through this port."""

from __future__ import annotations

from typing import Protocol

from takopi.core.ids import ResumeToken
from takopi.core.outgoing import Card
from takopi.store.ledger import NewRun, Run


class Signals(Protocol):
    """Who tells runs how to ask back, and takes the answers that do."""

    def instruction(self, run: NewRun | Run, *, resumed: bool) -> str | None:
        """What the engine is told beside the prompt."""
        ...

    async def take(
        self, run: Run, answer: str, *, thread: ResumeToken | None
    ) -> tuple[str, Card] | None:
        """Take an answer instead of showing it: the card to be sent in its place, and its key."""
        ...
