"""A small MCP server of takopi's own to try tools with: `python -m takopi.mcp.sample`."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("sample")


@server.tool()
def add(a: float, b: float) -> str:
    """Adds two numbers."""
    return f"{a + b:g}"


@server.tool()
def count_words(text: str) -> str:
    """Counts the words of a text."""
    return str(len(text.split()))


def main() -> None:
    """Serve on stdin and stdout until stdin ends."""
    server.run()


if __name__ == "__main__":
    main()
