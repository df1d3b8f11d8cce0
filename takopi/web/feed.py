"""Everybody who has the page open hears that something changed, and what is not kept anywhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

import trio

MAX_WAITING = 100
"""A page that does not read loses the oldest of what is not kept."""


class Listener:
    """One open page. `wake` is set when there is something; whoever waits on it sets a new one."""

    def __init__(self) -> None:
        self.wake = trio.Event()
        self._news: deque[tuple[str, object]] = deque(maxlen=MAX_WAITING)

    def put(self, event: str, data: object) -> None:
        """Something that is told once."""
        self._news.append((event, data))
        self.wake.set()

    def take(self) -> tuple[tuple[str, object], ...]:
        """What was told since the last time."""
        news = tuple(self._news)
        self._news.clear()
        return news


class Feed:
    """All open pages."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    def note_change(self) -> None:
        """There is something new in the store."""
        for listener in self._listeners:
            listener.wake.set()

    def tell(self, event: str, data: object) -> None:
        """Say something to everybody who listens now."""
        for listener in self._listeners:
            listener.put(event, data)

    @contextmanager
    def listen(self) -> Generator[Listener, None, None]:
        """Listen for as long as the block lasts."""
        listener = Listener()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
