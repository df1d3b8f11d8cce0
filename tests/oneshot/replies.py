"""What a Messages API says when the scripted model would not: broken, cut, foreign or refusing."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import trio


@dataclass(slots=True)
class Wire:
    """Where the replies are to be had, and the requests that came for them."""

    url: str
    requests: list[bytes] = field(default_factory=list[bytes])


@asynccontextmanager
async def serve_replies(*replies: bytes, endless: bool = False) -> AsyncGenerator[Wire]:
    """Give each request the next of `replies`, and the last one from then on.

    With `endless`, a reply is repeated until the client hangs up.
    """
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    wire = Wire(f"http://127.0.0.1:{listener.socket.getsockname()[1]}")

    async def answer(stream: trio.SocketStream) -> None:
        # A client that has read enough hangs up.
        with suppress(trio.BrokenResourceError):
            async with stream:
                wire.requests.append(await _read_request(stream))
                chosen = replies[min(len(wire.requests), len(replies)) - 1]
                await stream.send_all(chosen)
                while endless:
                    await stream.send_all(chosen)

    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, answer, [listener])
        try:
            yield wire
        finally:
            nursery.cancel_scope.cancel()


async def _read_request(stream: trio.SocketStream) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive_some()
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.splitlines()
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        body += await stream.receive_some()
    return head + b"\r\n\r\n" + body


def reply(status: str, body: bytes, *, kind: str = "application/json") -> bytes:
    """A whole reply. A client that tries again need not wait for long."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\nretry-after-ms: 1\r\n\r\n" + body


def failure(status: str, kind: str, message: str) -> bytes:
    error = {"type": "error", "error": {"type": kind, "message": message}}
    return reply(status, json.dumps(error).encode())


def streamed(*events: dict[str, Any]) -> bytes:
    """A reply of server-sent events, each named by its type."""
    body = b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )
    return reply("200 OK", body, kind="text/event-stream")


def said(text: str) -> dict[str, Any]:
    return {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    }


def stopped(reason: str, **details: Any) -> dict[str, Any]:
    delta = {"stop_reason": reason, "stop_sequence": None, **details}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}


END: dict[str, Any] = {"type": "message_stop"}
