"""How fast a chat may be written to: a burst at once, then a steady rate, and no wait before due.

Times are handed in, so that pace needs no clock of its own.
"""

from __future__ import annotations

from collections import deque

BURST = 5


class Bucket:
    """Holds up to `burst` tokens and gains `per_s` of them a second; each request takes one."""

    def __init__(self, *, per_s: float, burst: int) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = 0.0

    def ready_at(self, now: float, *, spare: int = 0) -> float:
        """When a token may be taken that leaves `spare` behind: `now`, if that is at once."""
        self._refill(now)
        # A hair less than a whole token is one: sums of fractions do not come out even.
        missing = 1 + spare - self._tokens - 1e-9
        return now if missing <= 0 else now + missing / self._per_s

    def take(self, now: float) -> None:
        """Take a token that is there."""
        self._refill(now)
        self._tokens = max(0.0, self._tokens - 1)

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_s)
            self._at = now


class Window:
    """Never more than `limit` requests in any second; so many may go at once."""

    def __init__(self, limit: int = 30) -> None:
        self._limit = limit
        self._taken: deque[float] = deque(maxlen=limit)

    def ready_at(self, now: float) -> float:
        """When the next request may go: `now`, if that is at once."""
        if len(self._taken) < self._limit:
            return now
        return max(now, self._taken[0] + 1)

    def take(self, now: float) -> None:
        """A request goes."""
        self._taken.append(now)


def chat_bucket(chat_id: int) -> Bucket:
    """A chat's own pace: one a second with a person, twenty a minute in a group."""
    return Bucket(per_s=1.0 if chat_id > 0 else 20 / 60, burst=BURST)
