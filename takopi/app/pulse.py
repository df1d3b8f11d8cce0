"""What systemd hears of the daemon: ready once it receives, alive while it does, and the end."""

from __future__ import annotations

import trio

from takopi.core.errors import TakopiError
from takopi.kit.notify import Notifier


class Pulse:
    """The daemon's signs of life. Each comes from the work itself, so a stuck daemon gives none."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._is_ready = False

    def poll_ended(self, failure: TakopiError | None) -> None:
        """An attempt to receive has ended, or its pause goes on."""
        self._sign("receiving" if failure is None else f"cannot receive: {failure.what}")

    async def beat(self) -> None:
        """Stand in for the attempts to receive where there is only a page, which makes none."""
        status = "the page is open"
        self._sign(status)
        if (watchdog_s := self._notifier.watchdog_s) is None:
            return
        while True:
            await trio.sleep(watchdog_s / 2)
            self._sign(status)

    def stopping(self, *, running: int) -> None:
        """The end has begun, and so many runs may still end by themselves."""
        self._notifier.stopping(f"stopping, {running} running")

    def _sign(self, status: str) -> None:
        if self._is_ready:
            self._notifier.alive(status)
        else:
            self._is_ready = True
            self._notifier.ready(status)
