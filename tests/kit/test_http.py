from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from takopi.core.errors import Unreachable
from takopi.kit.http import UnfitReply, open_client, open_http

# httpx2 leaves its inner generators to Trio's finaliser when a reply is given up half-way.
given_up_half_way = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

Handler = Callable[[trio.SocketStream], Awaitable[None]]


async def serve(nursery: trio.Nursery, handler: Handler) -> str:
    """A server on loopback that lets `handler` say anything at all."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, handler, [listener])
    return f"http://127.0.0.1:{listener.socket.getsockname()[1]}"


async def read_request(stream: trio.SocketStream) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive_some()
    return data


def replying(reply: bytes) -> Handler:
    async def handler(stream: trio.SocketStream) -> None:
        await read_request(stream)
        await stream.send_all(reply)
        await stream.aclose()

    return handler


async def test_reply_of_any_status_is_a_reply(nursery: trio.Nursery) -> None:
    reply = b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}"
    url = await serve(nursery, replying(reply))
    async with open_http() as http:
        got = await http.request("POST", url, body=b"x")
    assert (got.status, got.headers["retry-after"], got.body) == (429, "7", b"{}")
    nursery.cancel_scope.cancel()


@given_up_half_way
@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut",
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz",
    ],
)
async def test_reply_that_is_cut_or_broken_may_have_been_applied(
    nursery: trio.Nursery, reply: bytes
) -> None:
    url = await serve(nursery, replying(reply))
    async with open_http() as http:
        with pytest.raises(Unreachable) as caught:
            await http.request("POST", f"{url}/bot123:canary/send", body=b"x")
    assert caught.value.maybe_applied
    assert "canary" not in repr(caught.value)
    assert caught.value.__cause__ is None
    nursery.cancel_scope.cancel()


async def test_refused_connection_was_certainly_not_applied() -> None:
    with trio.socket.socket() as unused:
        await unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/bot123:canary/send"
        async with open_http() as http:
            with pytest.raises(Unreachable) as caught:
                await http.request("POST", url)
    assert not caught.value.maybe_applied


@pytest.mark.parametrize("url", ["ftp://canary", "http://127.0.0.1:canary/", "canary"])
async def test_address_that_is_none_is_told_without_repeating_it(url: str) -> None:
    async with open_http() as http:
        with pytest.raises(Unreachable) as caught:
            await http.request("GET", url)
    assert not caught.value.maybe_applied
    assert "canary" not in str(caught.value)


@given_up_half_way
async def test_endless_reply_is_cut_off_at_the_limit(nursery: trio.Nursery) -> None:
    async def flood(stream: trio.SocketStream) -> None:
        await read_request(stream)
        try:
            await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                await stream.send_all(b"x" * 65536)
        except trio.BrokenResourceError:
            pass

    url = await serve(nursery, flood)
    async with open_http(max_body_bytes=1_000_000) as http:
        with trio.fail_after(30), pytest.raises(Unreachable, match="too long"):
            await http.request("GET", url)
    nursery.cancel_scope.cancel()


async def test_server_that_never_answers_is_left_by_the_callers_deadline_alone(
    nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    asked = trio.Event()
    deadline_s = 24 * 3600

    async def hang(stream: trio.SocketStream) -> None:
        await read_request(stream)
        asked.set()
        await trio.sleep_forever()

    async def jump() -> None:
        await asked.wait()
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(deadline_s - 1)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(1)

    url = await serve(nursery, hang)
    async with open_http() as http:
        nursery.start_soon(jump)
        with trio.move_on_after(deadline_s) as scope:
            await http.request("GET", url)
    assert scope.cancelled_caught
    nursery.cancel_scope.cancel()


async def test_redirect_is_a_reply_and_is_not_followed(nursery: trio.Nursery) -> None:
    paths: list[bytes] = []

    async def elsewhere(stream: trio.SocketStream) -> None:
        paths.append((await read_request(stream)).split()[1])
        await stream.send_all(b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n")
        await stream.aclose()

    url = await serve(nursery, elsewhere)
    async with open_http() as http:
        assert (await http.request("GET", f"{url}/a")).status == 302
    assert paths == [b"/a"]
    nursery.cancel_scope.cancel()


def endless(head: bytes) -> Handler:
    async def handler(stream: trio.SocketStream) -> None:
        await read_request(stream)
        try:
            await stream.send_all(head)
            while True:
                await stream.send_all(b"data: x\n\n" * 1000)
        except trio.BrokenResourceError:
            await stream.aclose()

    return handler


@given_up_half_way
@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "more than 100000 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "compressed"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n",
            "compressed",
        ),
    ],
)
async def test_library_gets_no_reply_that_is_longer_than_the_bound_or_may_be(
    nursery: trio.Nursery, head: bytes, why: str
) -> None:
    url = await serve(nursery, endless(head))
    with trio.fail_after(30):
        async with open_client(max_reply_bytes=100_000) as client:
            with pytest.raises(UnfitReply, match=why):
                await client.get(url)
    nursery.cancel_scope.cancel()


@given_up_half_way
async def test_stream_of_events_may_go_on_past_the_bound(nursery: trio.Nursery) -> None:
    url = await serve(
        nursery, endless(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    )
    size = 0
    with trio.fail_after(30):
        async with (
            open_client(max_reply_bytes=100_000) as client,
            client.stream("GET", url) as response,
        ):
            async for piece in response.aiter_bytes():
                size += len(piece)
                if size > 1_000_000:
                    break
    assert size > 1_000_000
    nursery.cancel_scope.cancel()


async def test_reply_is_not_asked_for_compressed_where_there_is_a_bound(
    nursery: trio.Nursery,
) -> None:
    asked: list[bytes] = []

    async def handler(stream: trio.SocketStream) -> None:
        asked.append(await read_request(stream))
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await stream.aclose()

    url = await serve(nursery, handler)
    async with open_client(max_reply_bytes=100_000) as client:
        assert (await client.get(url)).content == b"{}"
    assert b"\r\naccept-encoding: identity\r\n" in asked[0].lower()
    nursery.cancel_scope.cancel()
