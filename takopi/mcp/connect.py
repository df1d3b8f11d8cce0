"""Connections to MCP servers by the official SDK, over stdio under the keeper or over HTTP.

Nothing imports this module but on first use, in a thread: the SDK takes a second to import.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from takopi.core.errors import Refused, Unreachable
from takopi.core.tools import MCPTool
from takopi.kit.http import open_client
from takopi.kit.lines import LineReader, Oversize
from takopi.kit.proc import Child, Command, Keeper
from takopi.mcp.content import as_text

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

MAX_MESSAGE_BYTES = 128 * 1024 * 1024
"""The longest message that is read; a longer one ends the connection."""

IN_LOOP_BYTES = 1024 * 1024
"""A longer message is decoded in a thread."""

MAX_PAGES = 100
MAX_TOOLS = 500

_GONE = {mcp_types.CONNECTION_CLOSED, mcp_types.INVALID_REQUEST}


class Connection:
    """One server that has said which tools it has; they can be called from any task."""

    def __init__(self, client: Client, tools: tuple[MCPTool, ...], lost: trio.Event) -> None:
        self.tools = tools
        self.lost = lost
        """Set once the server is known to be no longer there."""
        self._client = client

    async def call(self, tool: str, arguments: dict[str, Any], *, max_bytes: int) -> str:
        """What the tool returns, as text; `Refused` is its own error, `Unreachable` no answer."""
        try:
            result = await self._client.call_tool(tool, arguments)
        except MCPError as error:
            if error.code in _GONE:
                self.lost.set()
                raise Unreachable(f"the server is gone: {error.message}", maybe_applied=True) from (
                    error
                )
            raise Refused(error.message) from error
        except RuntimeError as error:  # what the SDK raises for a result that breaks its own schema
            raise Refused(str(error)) from error
        text = as_text(result.content, result.structured_content, max_bytes=max_bytes)
        if result.is_error:
            raise Refused(text or "the tool failed and did not say why")
        return text


@asynccontextmanager
async def connect_stdio(
    keeper: Keeper, command: Command, *, name: str, grace_s: float
) -> AsyncGenerator[Connection, None]:
    """A server that is a program: it ends with the block, with everything that it started."""
    lost = trio.Event()
    async with (
        keeper.child(command, grace_s=grace_s) as child,
        _connected(name, _stdio(child, lost), lost) as connection,
    ):
        yield connection


@asynccontextmanager
async def connect_http(url: str, *, name: str) -> AsyncGenerator[Connection, None]:
    """A server at an address."""
    async with open_client() as http:
        transport = streamable_http_client(
            url, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES
        )
        async with _connected(name, transport, trio.Event()) as connection:
            yield connection


@asynccontextmanager
async def _connected(
    name: str, transport: AbstractAsyncContextManager[TransportStreams], lost: trio.Event
) -> AsyncGenerator[Connection, None]:
    # Our own deadlines end a call, and nothing is cached beyond the connection.
    async with Client(transport, read_timeout_seconds=math.inf, cache=None) as client:
        yield Connection(client, await _list_tools(client, name), lost)


async def _list_tools(client: Client, name: str) -> tuple[MCPTool, ...]:
    tools: list[MCPTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += [
            MCPTool(f"{name}__{tool.name}", tool.description or "", tool.input_schema)
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if cursor is None or len(tools) > MAX_TOOLS:
            break
    return tuple(tools[:MAX_TOOLS])


@asynccontextmanager
async def _stdio(child: Child, lost: trio.Event) -> AsyncGenerator[TransportStreams, None]:
    """The child's lines as the SDK's messages; `lost` is set when there will be no more."""
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with to_session, incoming, outgoing, from_session, trio.open_nursery() as nursery:
        nursery.start_soon(_read, child, to_session, lost)
        nursery.start_soon(_write, child, from_session)
        nursery.start_soon(_drain, child)
        try:
            yield incoming, outgoing
        finally:
            nursery.cancel_scope.cancel()


async def _read(
    child: Child,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    lost: trio.Event,
) -> None:
    lines = LineReader(child.stdout, max_bytes=MAX_MESSAGE_BYTES)
    async with to_session:
        try:
            while batch := await lines.receive():
                for line in batch:
                    if isinstance(line, Oversize):
                        return  # its request would never be answered: the connection is over
                    await to_session.send(await _decode(line))
        except (trio.BrokenResourceError, trio.ClosedResourceError, anyio.BrokenResourceError):
            return
        finally:
            lost.set()


async def _decode(line: bytes) -> SessionMessage | Exception:
    if len(line) > IN_LOOP_BYTES:
        return await trio.to_thread.run_sync(_parse, line)
    return _parse(line)


def _parse(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error  # the SDK passes over it: servers print to stdout what they should not


async def _write(child: Child, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with from_session:
        try:
            async for sent in from_session:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                await child.stdin.send_all(text.encode(errors="replace") + b"\n")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


async def _drain(child: Child) -> None:
    """A server that writes to stderr must not wait for a reader."""
    while await child.stderr.receive_some(65536):
        pass
