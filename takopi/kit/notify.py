"""Tells systemd how this process fares, where it asked for it; never waits and never fails."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import MutableMapping

_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Notifier:
    """One end of systemd's socket. Without an address, nobody hears anything.

    `watchdog_s` is the longest silence that systemd bears; None where it does not watch.
    """

    def __init__(self, address: str = "", *, watchdog_s: float | None = None) -> None:
        self.watchdog_s = watchdog_s
        # "@" is how the NUL of an abstract name is written in a variable.
        self._address = address.replace("@", "\0", 1) if address.startswith("@") else address
        self._due: dict[str, str] = {}

    @property
    def is_heard(self) -> bool:
        """Whether there is a systemd to tell, which keeps what is printed as well."""
        return bool(self._address)

    def ready(self, status: str) -> None:
        """The work has begun."""
        self._tell(READY="1", STATUS=status)

    def alive(self, status: str) -> None:
        """The work goes on."""
        self._tell(WATCHDOG="1", STATUS=status)

    def stopping(self, status: str) -> None:
        """The end has begun."""
        self._tell(STOPPING="1", STATUS=status)

    def _tell(self, **facts: str) -> None:
        if not self._address:
            return
        # What could not be told before is told now: a READY that is lost would end the service.
        self._due |= {name: " ".join(fact.split()) for name, fact in facts.items()}
        message = "\n".join(f"{name}={fact}" for name, fact in self._due.items())
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd,
        ):
            systemd.settimeout(0)
            systemd.sendto(message.encode(errors="replace"), self._address)
            self._due.clear()


def take_notifier(environ: MutableMapping[str, str]) -> Notifier:
    """The way to systemd that the environment names; it is taken out, so that no child has it."""
    address, usec, pid = (environ.pop(name, "") for name in _VARIABLES)
    is_ours = pid in {"", str(os.getpid())}
    watched = is_ours and usec.isdecimal() and int(usec) > 0
    known = address.startswith(("/", "@")) and "\0" not in address
    return Notifier(address if known else "", watchdog_s=int(usec) / 1e6 if watched else None)
