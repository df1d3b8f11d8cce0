"""Keeps a long-lived task alive through transient failure, and only transient failure."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class Backoff:
    """Pauses that double up to a cap, each a little off so that many do not wake as one.

    A failure after `reset_after_s` of good work begins again with the first pause.
    """

    first_s: float = 0.5
    cap_s: float = 60.0
    factor: float = 2.0
    jitter: float = 0.2
    reset_after_s: float = 60.0
    # ruff: ignore[suspicious-non-cryptographic-random-usage] spread is all that is asked of it
    random: random.Random = field(default_factory=random.Random)
    _next_s: float = 0.0

    def pause_s(self) -> float:
        """The next pause."""
        base = self._next_s or self.first_s
        self._next_s = min(self.cap_s, base * self.factor)
        return base * (1 + self.random.uniform(-self.jitter, self.jitter))

    def reset(self) -> None:
        """Begin again with the first pause."""
        self._next_s = 0.0


@dataclass(frozen=True, slots=True)
class GiveUp:
    """So many failures within so long are not transient, whatever they are called."""

    failures: int
    within_s: float


async def keep_alive(
    work: Callable[[], Awaitable[None]],
    *,
    transient: tuple[type[Exception], ...],
    backoff: Backoff,
    on_retry: Callable[[Exception, float], None],
    give_up: GiveUp | None = None,
) -> None:
    """Run `work` until it returns, and again after each transient failure.

    A failure that knows better than the backoff says so in its `retry_after_s`. Any other error,
    and the transient one that was too many, is raised as it is.
    """
    failed_at: deque[float] = deque(maxlen=give_up.failures if give_up else 0)
    while True:
        began = trio.current_time()
        try:
            return await work()
        except transient as error:
            failure = error
            now = trio.current_time()
            failed_at.append(now)
            if (
                give_up
                and len(failed_at) == give_up.failures
                and now - failed_at[0] <= give_up.within_s
            ):
                raise
        if now - began >= backoff.reset_after_s:
            backoff.reset()
        pause_s = max(backoff.pause_s(), getattr(failure, "retry_after_s", 0.0))
        on_retry(failure, pause_s)
        await trio.sleep(pause_s)
