"""The two pipes of the demo engine: JSON lines out, JSON lines in, and the polite word heard."""

from __future__ import annotations

import json
import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STDIN, STDOUT, STDERR = 0, 1, 2
READ_BYTES = 65536


class Interrupted(Exception):
    """The other side asked to stop."""


class HungUp(Exception):
    """The other side is gone, and nothing can be asked any more."""


class Wire:
    """Says lines and hears lines. While it waits for anything, the polite word ends the wait."""

    def __init__(self) -> None:
        self.stubborn = False
        self.ended = False
        self._unread = bytearray()
        self._heard: list[dict[str, object]] = []

    @staticmethod
    def say(kind: str, /, **fields: object) -> None:
        """Write one line."""
        line = json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
        write_all(STDOUT, line.encode("utf-8", "replace") + b"\n")

    def pause(self, seconds: float) -> None:
        """Be silent for that time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.wait((), left)

    def hang(self) -> None:
        """Be silent for good."""
        while True:
            self.wait((), None)

    def check(self) -> None:
        """Look for the polite word without waiting."""
        self.wait((), 0)

    def hear(self, kind: str, *, seconds: float | None = None) -> dict[str, object] | None:
        """The next line of that kind; None when the time is over. Other lines are passed over."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            while self._heard:
                line = self._heard.pop(0)
                if line.get("type") == kind:
                    return line
            if self.ended:
                raise HungUp
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            self.wait((), left)

    def wait(self, fds: tuple[int, ...], seconds: float | None) -> bool:
        """Wait until one of `fds` can be read, which is True, a line was heard, or time is over."""
        inlet = () if self.ended else (STDIN,)
        ready, _, _ = select.select([*fds, *inlet], [], [], seconds)
        if STDIN in ready:
            self._read()
        return any(fd in ready for fd in fds)

    def _read(self) -> None:
        chunk = os.read(STDIN, READ_BYTES)
        self.ended = not chunk
        self._unread += chunk
        # An unterminated last line counts.
        end = len(self._unread) if self.ended else self._unread.rfind(b"\n") + 1
        lines = bytes(self._unread[:end]).splitlines()
        del self._unread[:end]
        for line in lines:
            try:
                said = fields(json.loads(line))
            except (ValueError, RecursionError):
                said = {}
            if not said:
                write_all(STDERR, b"demo: a line on stdin that is not understood\n")
            elif said.get("type") != "interrupt":
                self._heard.append(said)
            elif not self.stubborn:
                raise Interrupted


def write_all(fd: int, data: bytes) -> None:
    """Write bytes, all of them."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def fields(value: Any) -> dict[str, object]:
    """The fields of an object; of anything else, none."""
    return {**value} if isinstance(value, dict) else {}


def items(value: Any) -> list[object]:
    """The items of a list; of anything else, none."""
    return [*value] if isinstance(value, list) else []


def strings(value: object) -> list[str]:
    """The items of a list as text; of anything else, none."""
    return [str(item) for item in items(value)]
