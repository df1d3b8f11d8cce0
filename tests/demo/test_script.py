from __future__ import annotations

from functools import partial

import pytest
import trio

from takopi.cli.demo_page import Page
from takopi.cli.demo_script import play
from takopi.core.errors import TakopiError
from takopi.kit.http import open_client

WITHIN_S = 60.0


def nothing(_line: str) -> None:
    pass


async def reply(stream: trio.SocketStream, *, status: str, body: str) -> None:
    """Say the same to whoever asks."""
    async with stream:
        await stream.receive_some()
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        await stream.send_all((head + body).encode())


async def failure(*, status: str, body: str, step_s: float = WITHIN_S) -> str:
    """How the conversation with such a page ends."""
    async with trio.open_nursery() as nursery, open_client() as client:
        serve = partial(trio.serve_tcp, partial(reply, status=status, body=body), 0)
        listeners: list[trio.SocketListener] = await nursery.start(partial(serve, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        page = Page(client, f"http://127.0.0.1:{port}", tell=nothing)
        with pytest.raises(TakopiError) as caught:
            await play(page, announce=nothing, step_s=step_s)
        nursery.cancel_scope.cancel()
    return caught.value.what


async def test_step_that_goes_wrong_is_named() -> None:
    what = await failure(status="409 Conflict", body='{"error": "Not now."}')
    assert what == "step 1 of 6 failed: the page answers 409 to /send: Not now."


async def test_step_that_takes_too_long_says_what_did_not_come() -> None:
    what = await failure(status="200 OK", body='{"id": 1}', step_s=1)
    assert what == "step 1 of 6 failed: the answer did not come in 1 seconds"


async def test_page_that_is_not_there_is_said() -> None:
    with trio.socket.socket() as bound:
        await bound.bind(("127.0.0.1", 0))
        async with open_client() as client:
            page = Page(client, f"http://127.0.0.1:{bound.getsockname()[1]}", tell=nothing)
            with pytest.raises(TakopiError, match="step 1 of 6 failed: the page did not answer"):
                await play(page, announce=nothing)
