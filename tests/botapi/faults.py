"""What can go wrong between the bot and Telegram, for one request or for a while."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import trio

from tests.botapi.refusal import Refused


@dataclass(frozen=True, slots=True)
class Html:
    """A gateway answers in Telegram's place, with a page for people."""

    status: int = 502


@dataclass(frozen=True, slots=True)
class Cut:
    """The reply breaks off in the middle, and the connection with it."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection is closed without a reply."""


@dataclass(frozen=True, slots=True)
class Silence:
    """The connection stays open, and nothing ever comes."""


@dataclass(frozen=True, slots=True)
class Late:
    """The reply takes its time."""

    by_s: float


@dataclass(frozen=True, slots=True)
class Held:
    """The reply waits for the test to let it go."""

    until: trio.Event = field(default_factory=trio.Event)


Trouble: TypeAlias = Refused | Html | Cut | Closed | Silence | Late | Held


@dataclass(slots=True, eq=False)
class Fault:
    """Trouble for the requests that it fits. `applied` ones take effect all the same."""

    trouble: Trouble
    method: str | None
    chat_id: int | None
    applied: bool
    times: int | None
    until_s: float
    hits: int = 0
    _struck: trio.Event = field(default_factory=trio.Event)

    def fits(self, method: str, chat_id: object) -> bool:
        return (
            (self.method is None or self.method == method)
            and (self.chat_id is None or self.chat_id == chat_id)
            and (self.times is None or self.hits < self.times)
            and trio.current_time() < self.until_s
        )

    def strike(self) -> None:
        self.hits += 1
        self._struck.set()
        self._struck = trio.Event()

    def end(self) -> None:
        """From now on requests are answered again."""
        self.times = 0

    async def struck(self, hits: int = 1, *, within_s: float = 20.0) -> None:
        """Until so many requests have met it."""
        with trio.move_on_after(within_s):
            while self.hits < hits:
                await self._struck.wait()
            return
        raise AssertionError(f"{self.trouble} struck {self.hits} of {hits} times in {within_s} s")
