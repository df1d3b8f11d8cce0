"""McpServers with real servers, for as long as a block lasts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal

import trio

from takopi.config.schema import Mcp, McpServer
from takopi.kit.proc import open_keeper
from takopi.mcp.servers import McpServers, Surroundings

SERVER = Path(__file__).with_name("server.py")
WITHIN_S = 60.0

Way = Literal["stdio", "http", "events"]
WAYS: tuple[Way, ...] = ("stdio", "http", "events")
"""Over stdio, over HTTP with plain JSON in its replies, and with streams of events."""


def stdio(*, projects: tuple[str, ...] = (), allow: tuple[str, ...] = ()) -> McpServer:
    return McpServer(command=sys.executable, args=(str(SERVER),), projects=projects, allow=allow)


@asynccontextmanager
async def open_servers(
    folder: Path, servers: dict[str, McpServer], **limits: float
) -> AsyncGenerator[McpServers, None]:
    config = Mcp(servers=servers, **limits)  # pyright: ignore[reportArgumentType] numbers all
    async with (
        open_keeper(on_lost=lambda: None) as keeper,
        trio.open_nursery() as nursery,
    ):
        around = Surroundings(keeper, dict(os.environ), ("canary",), folder, grace_s=1)
        with trio.fail_after(WITHIN_S):
            await trio.lowlevel.checkpoint()
            yield McpServers(nursery, around, lambda: config)
        nursery.cancel_scope.cancel()


@contextmanager
def http_server(*args: str) -> Generator[str, None, None]:
    """The same server over HTTP; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, SERVER, str(port), *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@contextmanager
def server_by(way: Way, *, allow: tuple[str, ...] = ("*",)) -> Generator[McpServer, None, None]:
    """The server, reached in this way."""
    if way == "stdio":
        yield stdio(allow=allow)
        return
    with http_server(*(["events"] if way == "events" else [])) as url:
        yield McpServer(url=url, allow=allow)
