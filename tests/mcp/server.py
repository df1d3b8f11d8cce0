"""A real MCP server with tools for every occasion: over stdio, or over HTTP with a port."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Image, MCPServer

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


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
