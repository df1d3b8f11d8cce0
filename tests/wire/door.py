"""A port on loopback that can be shut, opened again, and cleared of its visitors."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import trio


class Door:
    """The port stays the same from the first opening to the last, and nobody else can take it."""

    def __init__(
        self,
        nursery: trio.Nursery,
        converse: Callable[[trio.SocketStream], Awaitable[None]],
    ) -> None:
        self._nursery = nursery
        self._converse = converse
        # Bound and never listening: it keeps the port while the door is shut.
        self._place = _bind(0)
        self.port: int = self._place.getsockname()[1]
        self._visits: set[trio.CancelScope] = set()
        self._listening: trio.CancelScope | None = None
        self._shut = trio.Event()

    def open(self) -> None:
        """Let visitors in."""
        if self._listening is None:
            ear = _bind(self.port)
            ear.listen(128)
            self._shut = trio.Event()
            self._listening = trio.CancelScope()
            self._nursery.start_soon(self._listen, ear, self._listening)

    async def shut(self) -> None:
        """Refuse new visitors and throw out those that are in."""
        if self._listening is not None:
            self._listening.cancel()
            await self._shut.wait()
        self.drop()

    def drop(self) -> None:
        """Throw out whoever is in."""
        for visit in self._visits:
            visit.cancel()

    def give_up(self) -> None:
        """Let go of the port; the nursery ends the rest."""
        self._place.close()

    async def _listen(self, ear: socket.socket, scope: trio.CancelScope) -> None:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(ear))
        with scope:
            await trio.serve_listeners(self._visit, [listener], handler_nursery=self._nursery)
        ear.close()
        self._listening = None
        self._shut.set()

    async def _visit(self, stream: trio.SocketStream) -> None:
        with trio.CancelScope() as visit:
            self._visits.add(visit)
            try:
                await self._converse(stream)
            finally:
                self._visits.discard(visit)


def _bind(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    sock.setblocking(False)
    return sock
