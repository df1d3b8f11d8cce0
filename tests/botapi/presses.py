"""Presses of buttons, and what the bot answers to them."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio


@dataclass(frozen=True, slots=True)
class Answered:
    """What the bot answered to a press, when in Trio's time."""

    at_s: float
    text: str
    alert: bool


@dataclass(slots=True, eq=False)
class Pressed:
    """A press of a button. `asked_s` is the time of day, `at_s` Trio's."""

    id: str
    by: str
    data: str
    at_s: float
    asked_s: float
    update_id: int | None = None
    answer: Answered | None = None
    _answered: trio.Event = field(default_factory=trio.Event)

    async def answered(self, *, within_s: float = 20.0) -> Answered:
        """The bot's answer, as soon as it is there."""
        with trio.move_on_after(within_s):
            await self._answered.wait()
        if self.answer is None:
            raise AssertionError(f"the press of {self.data!r} was not answered in {within_s} s")
        return self.answer

    def settle(self, text: str, *, alert: bool) -> None:
        self.answer = Answered(trio.current_time(), text, alert)
        self._answered.set()
