"""A value that is always the newest: a slow reader skips what was overtaken."""

from __future__ import annotations

from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class Latest(Generic[T]):
    """One writer, one reader. Putting never waits; the reader never sees a value twice."""

    def __init__(self) -> None:
        self._fresh: list[T] = []
        self._changed = trio.Event()
        self._closed = False

    def put(self, value: T) -> None:
        """Replace what was not read yet. After `close` it is too late, and does nothing."""
        if not self._closed:
            self._fresh[:] = [value]
            self._changed.set()

    def close(self) -> None:
        """No more values will come. One that was not read yet can still be read."""
        self._closed = True
        self._changed.set()

    def __aiter__(self) -> Latest[T]:
        return self

    async def __anext__(self) -> T:
        await trio.lowlevel.checkpoint()
        while not self._fresh:
            if self._closed:
                raise StopAsyncIteration
            self._changed = trio.Event()
            await self._changed.wait()
        return self._fresh.pop()
