"""The only door to HTTP: clients without timeouts of their own, and errors that hold no address.

Deadlines are Trio scopes, set by the caller. The text of an httpx2 error may quote a URL, and a URL
may carry a token; so what leaves this module names the kind of failure and nothing else.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import httpx2
import trio

from takopi.core.errors import Unreachable

NOT_SENT = (httpx2.ConnectError, httpx2.PoolTimeout, httpx2.UnsupportedProtocol, httpx2.ProxyError)
"""Failures before the first byte of the request was on its way."""

FAULTS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
"""Everything that httpx2 raises for a request that brought no whole reply."""

BareClient: TypeAlias = httpx2.AsyncClient

Body: TypeAlias = bytes | AsyncIterable[bytes]
"""What a request carries, whole or in pieces."""


class UnfitReply(httpx2.StreamError):
    """A reply that is not read to its end: it is too long, or does not show how long it is."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class OpenReply:
    """An answer of which nothing but the head has been read."""

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]


class HttpClient:
    """A pool of connections to any number of hosts."""

    def __init__(self, client: httpx2.AsyncClient, *, max_body_bytes: int) -> None:
        self._client = client
        self._max_body_bytes = max_body_bytes

    async def request(
        self,
        method: str,
        url: str,
        *,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request and read the whole reply; anything less is `Unreachable`.

        A body in pieces wants its `content-length` among the headers.
        """
        async with self.stream(method, url, body=body, headers=headers) as reply:
            data = bytearray()
            async for piece in reply.pieces:
                data += piece
                if len(data) > self._max_body_bytes:
                    raise Unreachable("the reply is too long", maybe_applied=True)
            return Reply(reply.status, reply.headers, bytes(data))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[OpenReply, None]:
        """Send one request and read the reply while the block lasts, however long it is."""
        try:
            async with (
                self._client.stream(method, url, content=body, headers=headers) as response,
                aclosing(response.aiter_bytes()) as pieces,
            ):
                yield OpenReply(response.status_code, response.headers, pieces)
        except FAULTS as error:
            raise Unreachable(
                f"no usable reply ({type(error).__name__})",
                maybe_applied=not isinstance(error, (*NOT_SENT, httpx2.InvalidURL)),
            ) from None


@asynccontextmanager
async def open_http(
    *, max_connections: int = 20, max_body_bytes: int = 64 * 1024 * 1024
) -> AsyncGenerator[HttpClient, None]:
    """A client for as long as the block lasts. Long polling wants one of its own."""
    async with open_client(max_connections=max_connections) as client:
        yield HttpClient(client, max_body_bytes=max_body_bytes)


@asynccontextmanager
async def open_client(
    *, max_connections: int = 20, max_reply_bytes: int | None = None
) -> AsyncGenerator[BareClient, None]:
    """The client underneath, for a library that wants to be handed one.

    With `max_reply_bytes`, reading a longer reply raises `UnfitReply`. Streams of events may go on
    for ever: how long one event may be is up to their reader.
    """
    # Reading the certificates takes tens of milliseconds, and is not done in the loop.
    tls = await trio.to_thread.run_sync(_trusted)
    bound = None if max_reply_bytes is None else _Bound(max_reply_bytes)
    async with httpx2.AsyncClient(
        timeout=None,
        verify=tls,
        follow_redirects=False,
        headers=None if bound is None else {"accept-encoding": "identity"},
        event_hooks=None if bound is None else {"response": [bound.put_on]},
        limits=httpx2.Limits(max_connections=max_connections, keepalive_expiry=60),
    ) as client:
        yield client


@dataclass(frozen=True, slots=True)
class _Bound:
    max_bytes: int

    async def put_on(self, response: httpx2.Response) -> None:
        """Let the reply be read through the bound; nothing of it has been read yet."""
        kind = response.headers.get("content-type", "").lower()
        max_bytes = None if kind.startswith("text/event-stream") else self.max_bytes
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        response.stream = _BoundedStream(response.stream, max_bytes, encoding=encoding)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: object, max_bytes: int | None, *, encoding: str) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)  # ruff: ignore[assert] of an AsyncClient
        self._stream = stream
        self._max_bytes = max_bytes
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding != "identity":
            # A few bytes may become any number of them.
            raise UnfitReply(f"the reply is compressed ({self._encoding}), which was not asked for")
        size = 0
        pieces = aiter(self._stream)
        try:
            async for piece in pieces:
                size += len(piece)
                if self._max_bytes is not None and size > self._max_bytes:
                    raise UnfitReply(f"the reply has more than {self._max_bytes} bytes")
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()

    async def aclose(self) -> None:
        await self._stream.aclose()


@cache
def _trusted() -> ssl.SSLContext:
    """The system's certificates, in memory once for all clients."""
    return ssl.create_default_context()
