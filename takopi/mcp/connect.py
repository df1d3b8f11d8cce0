"""Connections to MCP servers by the official SDK, over stdio under the keeper or over HTTP.

Nothing imports this module but on first use, in a thread: the SDK takes a second to import.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
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

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
"""The longest message that is read, whichever way it comes; the call that it answers fails."""

IN_LOOP_BYTES = 1024 * 1024
"""A longer message is decoded in a thread."""

MAX_PAGES = 100
MAX_TOOLS = 500
MAX_TOOLS_BYTES = 1024 * 1024
"""How long the descriptions and schemas of all tools may be: they are part of every prompt."""

TOO_LONG = f"its reply has more than {MAX_MESSAGE_BYTES} bytes"

_GONE = {mcp_types.CONNECTION_CLOSED, mcp_types.INVALID_REQUEST}


@dataclass(slots=True)
class Loss:
    """Whether a server is known to be no longer there, and why, where that is known."""

    event: trio.Event = field(default_factory=trio.Event)
    why: str = ""

    def happen(self, why: str = "") -> None:
        """Let it be so; the first reason is the one that stays."""
        self.why = self.why or why
        self.event.set()


class Connection:
    """One server that has said which tools it has; they can be called from any task."""

    def __init__(self, client: Client, tools: tuple[MCPTool, ...], loss: Loss) -> None:
        self.tools = tools
        self._client = client
        self._loss = loss

    @property
    def is_lost(self) -> bool:
        """Whether the server is known to be no longer there."""
        return self._loss.event.is_set()

    async def wait_lost(self) -> str:
        """Wait until it is, and say why, where that is known."""
        await self._loss.event.wait()
        return self._loss.why

    async def call(self, tool: str, arguments: dict[str, Any], *, max_bytes: int) -> str:
        """What the tool returns, as text; `Refused` is its own error, `Unreachable` no answer."""
        try:
            result = await self._client.call_tool(tool, arguments)
        except MCPError as error:
            if error.code in _GONE:
                self._loss.happen(error.message)
                raise Unreachable(
                    f"the server is gone: {self._loss.why}", maybe_applied=True
                ) from error
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
    loss = Loss()
    async with (
        keeper.child(command, grace_s=grace_s) as child,
        _connected(name, _stdio(child, loss), loss) as connection,
    ):
        yield connection


@asynccontextmanager
async def connect_http(url: str, *, name: str) -> AsyncGenerator[Connection, None]:
    """A server at an address."""
    async with open_client(max_reply_bytes=MAX_MESSAGE_BYTES) as http:
        transport = streamable_http_client(
            url, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES
        )
        async with _connected(name, transport, Loss()) as connection:
            yield connection


@asynccontextmanager
async def _connected(
    name: str, transport: AbstractAsyncContextManager[TransportStreams], loss: Loss
) -> AsyncGenerator[Connection, None]:
    # Our own deadlines end a call, and nothing is cached beyond the connection.
    async with Client(transport, read_timeout_seconds=math.inf, cache=None) as client:
        yield Connection(client, await _list_tools(client, name), loss)


async def _list_tools(client: Client, name: str) -> tuple[MCPTool, ...]:
    tools: list[MCPTool] = []
    size = 0
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            tools.append(MCPTool(f"{name}__{tool.name}", tool.description or "", tool.input_schema))
            size += len(tool.model_dump_json())
        if size > MAX_TOOLS_BYTES:
            raise Refused(f"its tools have more than {MAX_TOOLS_BYTES} bytes")
        cursor = page.next_cursor
        if cursor is None or len(tools) > MAX_TOOLS:
            break
    return tuple(tools[:MAX_TOOLS])


@asynccontextmanager
async def _stdio(child: Child, loss: Loss) -> AsyncGenerator[TransportStreams, None]:
    """The child's lines as the SDK's messages; the loss happens when there will be no more."""
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with to_session, incoming, outgoing, from_session, trio.open_nursery() as nursery:
        nursery.start_soon(_read, child, to_session, loss)
        nursery.start_soon(_write, child, from_session)
        nursery.start_soon(_drain, child)
        try:
            yield incoming, outgoing
        finally:
            nursery.cancel_scope.cancel()


async def _read(
    child: Child,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    loss: Loss,
) -> None:
    lines = LineReader(child.stdout, max_bytes=MAX_MESSAGE_BYTES)
    async with to_session:
        try:
            while batch := await lines.receive():
                for line in batch:
                    if isinstance(line, Oversize):
                        # Nobody can tell which call it answers: the connection is over.
                        loss.happen(TOO_LONG)
                        return
                    await to_session.send(await _decode(line))
        except (trio.BrokenResourceError, trio.ClosedResourceError, anyio.BrokenResourceError):
            return
        finally:
            loss.happen()


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
