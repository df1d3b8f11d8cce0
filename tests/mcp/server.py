"""A real MCP server with tools for every occasion: over stdio, or with a port over HTTP.

There its replies are plain JSON, or with `events` after the port streams of events. With `stuck`
it does so too, and does not answer when it is told that a session is over.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import anyio
import uvicorn
from mcp.server.mcpserver import Image, MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 92

server = MCPServer("test")


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def echo(text: str) -> str:
    """Returns what it is given."""
    return text


@server.tool()
def fail() -> str:
    """Raises."""
    raise ValueError("the sea is rough")


@server.tool()
def hang() -> str:
    """Never answers."""
    time.sleep(3600)
    return ""


@server.tool()
def much(size: int) -> str:
    """Returns that many bytes."""
    return "x" * size


@server.tool()
def picture() -> Image:
    """Returns an image."""
    return Image(data=PNG, format="png")


@server.tool()
def die() -> str:
    """Ends the server in the middle of the call."""
    os._exit(3)


@server.tool()
def count(path: str) -> str:
    """Adds a line to a file: how often it was called."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write("called\n")
    return "counted"


@server.tool()
def read_note(path: str) -> str:
    """Returns what a file says."""
    return Path(path).read_text(encoding="utf-8")


@server.tool()
def write_note(path: str, text: str) -> str:
    """Lets a file say this."""
    Path(path).write_text(text, encoding="utf-8")
    return "written"


def aged(app: ASGIApp, *, stuck: bool) -> ASGIApp:
    """The same as a server that is a year older: it has sessions, and answers with events."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if stuck and scope.get("method") == "DELETE":
            await anyio.sleep_forever()
        headers = [
            (name, value)
            for name, value in scope.get("headers", ())
            if name != b"mcp-protocol-version" or value < b"2026"
        ]
        await app({**scope, "headers": headers}, receive, send)

    return answer


if __name__ == "__main__":
    match sys.argv[1:]:
        case [port, "events" | "stuck" as how]:
            app = aged(server.streamable_http_app(), stuck=how == "stuck")
            uvicorn.run(app, port=int(port), log_level="error")
        case [port]:
            server.run("streamable-http", port=int(port))
        case _:
            server.run()
