"""HTTP/1.1 as the loopback servers of the tests speak it: one connection, request by request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import h11
import trio

MAX_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One whole request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class HttpConnection:
    """One client's connection, kept alive from request to request."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)

    async def next_request(self) -> HttpRequest | None:
        """The next request, or None when there will be none."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        elif self._http.our_state is not h11.IDLE:
            return None
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self.send(h11.InformationalResponse(status_code=100, headers=[]))
                self._http.receive_data(await self.stream.receive_some(65536))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head:
                return HttpRequest(
                    method=head.method.decode(),
                    target=head.target.decode(),
                    headers={name.decode(): value.decode() for name, value in head.headers},
                    body=bytes(body),
                )
            else:
                return None

    async def reply(
        self, status: int, body: bytes, *, content_type: str = "application/json"
    ) -> None:
        """Answer with a whole body, in one piece."""
        headers = [("content-type", content_type), ("content-length", str(len(body)))]
        data = (
            (self._http.send(h11.Response(status_code=status, headers=headers)) or b"")
            + (self._http.send(h11.Data(data=body)) or b"")
            + (self._http.send(h11.EndOfMessage()) or b"")
        )
        await self.stream.send_all(data)

    async def send(self, event: h11.Event) -> None:
        """Answer piece by piece."""
        await self.stream.send_all(self._http.send(event) or b"")

    async def wait_until_left(self) -> None:
        """Say nothing until the client hangs up. What it sends meanwhile is not lost."""
        while data := await self.stream.receive_some(65536):
            self._http.receive_data(data)
