"""Telegram's limits on how fast a bot may write, for measuring whether it keeps to them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import trio

from tests.botapi.chats import Chat
from tests.botapi.refusal import too_many_requests

COUNTED = ("send", "edit", "copy", "forward")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is let through. The burst is one more than a polite bot uses of it: what leaves
    a second apart may arrive a little closer together."""

    private_per_s: float = 1.0
    group_per_min: float = 20.0
    overall_per_s: float = 30.0
    burst: int = 6


class _Bucket:
    def __init__(self, per_s: float, size: float) -> None:
        self._per_s = per_s
        self._size = size
        self._left = size
        self._at_s = trio.current_time()

    def wait_s(self) -> float:
        """How long until there is one to take."""
        now_s = trio.current_time()
        self._left = min(self._size, self._left + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        return max(0.0, (1.0 - self._left) / self._per_s)

    def take(self) -> None:
        self._left -= 1.0


class Pace:
    """Who has written how much."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._overall = _Bucket(limits.overall_per_s, limits.overall_per_s)
        self._chats: dict[int, _Bucket] = {}
        self.refused = 0

    def check(self, method: str, chat: Chat) -> None:
        """Raises `Refused` for a request that comes too early."""
        if not method.startswith(COUNTED) or method == "sendChatAction":
            return
        bucket = self._chats.get(chat.id)
        if bucket is None:
            per_s = (
                self._limits.private_per_s
                if chat.type == "private"
                else self._limits.group_per_min / 60
            )
            bucket = self._chats[chat.id] = _Bucket(per_s, self._limits.burst)
        wait_s = max(bucket.wait_s(), self._overall.wait_s())
        if wait_s > 0:
            self.refused += 1
            raise too_many_requests(math.ceil(wait_s))
        bucket.take()
        self._overall.take()
