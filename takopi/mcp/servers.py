"""The MCP servers of the config: one owner task each, started on first use, restarted with care.

A server that dies or hangs fails the calls that wait for it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import structlog
import trio

from takopi.config.environ import child_environ
from takopi.config.schema import Mcp, McpServer
from takopi.core.errors import Refused, TakopiError, Unreachable
from takopi.core.tools import MCPTool
from takopi.kit.late import load
from takopi.kit.proc import Command, Keeper
from takopi.kit.supervise import Backoff

if TYPE_CHECKING:
    from takopi.mcp.connect import Connection

PATIENCE_S = 2.0
"""A server that is tried again within this time is waited for."""

LEEWAY_S = 5.0
"""What an offer waits for beyond the time to start: the pause before it, and the ending after."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.mcp")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every server is started with."""

    keeper: Keeper
    environ: Mapping[str, str]
    secrets: tuple[str, ...]
    cwd: Path
    grace_s: float


class Server:
    """One server and the task that owns its connection."""

    def __init__(self, name: str, settings: McpServer, around: Surroundings) -> None:
        self.name = name
        self.settings = settings
        self.cancel_scope = trio.CancelScope()
        self._around = around
        self._wanted = trio.Event()
        self._settled = trio.Event()
        self._connection: Connection | None = None
        self._retry_at = 0.0
        self._is_over = False
        self.problem = ""

    @property
    def tools(self) -> tuple[MCPTool, ...]:
        """The tools that it has now; none before it is connected."""
        return () if self._connection is None else self._connection.tools

    @property
    def is_connected(self) -> bool:
        """Whether it can be called at once."""
        return self._connection is not None

    async def connect(self) -> Connection:
        """Its connection, which is made if there is none; the caller sets the deadline."""
        while True:
            if self._is_over:
                raise Unreachable("its settings have changed", maybe_applied=False)
            connection = self._connection
            if connection is not None and not connection.is_lost:
                return connection
            pause_s = self._retry_at - trio.current_time()
            if connection is None and pause_s > PATIENCE_S:
                raise Unreachable(
                    f"{self.problem}; it is tried again in {pause_s:.0f} s", maybe_applied=False
                )
            settled = self._settled
            if connection is None:
                self._wanted.set()
            await settled.wait()
            if connection is None and self._connection is None and not self._is_over:
                raise Unreachable(self.problem, maybe_applied=False)

    async def serve(self, start_s: float) -> None:
        """Own the connection until cancelled; nobody waits for it after that."""
        try:
            with self.cancel_scope:
                await self._reconnect(start_s)
        finally:
            self._is_over = True
            self._settle()

    async def _reconnect(self, start_s: float) -> NoReturn:
        """Hold one connection after the other; a failure is followed by a growing pause."""
        backoff = Backoff(reset_after_s=PATIENCE_S)
        while True:
            await self._wanted.wait()
            began = trio.current_time()
            try:
                why = await self._hold(start_s)
                self.problem = f"the server is gone: {why}" if why else "the server ended"
            except TakopiError as error:
                self.problem = error.what
            except BaseExceptionGroup as group:
                # What fails while it is being stopped must not outlive the stopping.
                _, stopping = group.split(Exception)
                if stopping is not None:
                    raise stopping from None
                self.problem = _reason(group)
            except Exception as error:  # whatever a server does to the SDK is its own ending
                log.warning("server.failed", server=self.name, exc_info=True)
                self.problem = _reason(error)
            finally:
                self._connection = None
            if trio.current_time() - began >= backoff.reset_after_s:
                backoff.reset()
            pause_s = backoff.pause_s()
            self._retry_at = trio.current_time() + pause_s
            self._wanted = trio.Event()
            log.info("server.ended", server=self.name, why=self.problem, pause_s=pause_s)
            self._settle()
            await trio.sleep(pause_s)

    async def _hold(self, start_s: float) -> str:
        """Connect, and stay connected until the server is gone; why, where that is known."""
        why: str | None = None
        with trio.move_on_after(start_s) as deadline:
            async with await self._open() as connection:
                deadline.deadline = float("inf")
                self._connection = connection
                self.problem = ""
                log.info("server.connected", server=self.name, tools=len(connection.tools))
                self._settle()
                why = await connection.wait_lost()
                # Over HTTP it is told that the session is over, and may not answer that either.
                deadline.deadline = trio.current_time() + self._around.grace_s
        if why is None:
            raise Unreachable(f"it did not start within {start_s:g} s", maybe_applied=False)
        return why

    def _settle(self) -> None:
        """Let those who wait look again."""
        self._settled.set()
        self._settled = trio.Event()

    async def _open(self) -> AbstractAsyncContextManager[Connection]:
        await load("takopi.mcp.connect")
        from takopi.mcp.connect import connect_http, connect_stdio

        settings, around = self.settings, self._around
        if settings.url is not None:
            return connect_http(settings.url, name=self.name)
        env = child_environ(
            around.environ, secrets=around.secrets, cwd=around.cwd, extra=settings.env
        )
        argv = [settings.command or "", *settings.args]
        command = Command(argv, around.cwd, env)
        return connect_stdio(around.keeper, command, name=self.name, grace_s=around.grace_s)


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a run is offered, and what is wrong with servers that should have some."""

    tools: tuple[MCPTool, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class McpServers:
    """All servers of the config. Their tasks live in `nursery`, which is given to it."""

    nursery: trio.Nursery
    around: Surroundings
    config: Callable[[], Mcp]
    _servers: dict[str, Server] = field(default_factory=dict[str, Server])

    def find(self, project: str | None) -> tuple[Server, ...]:
        """The servers that are meant for runs of this project, None for one without."""
        self._configure()
        return tuple(each for each in self._servers.values() if _fits(each.settings, project))

    async def offer(self, project: str | None) -> Offer:
        """The tools of all servers of a project, which are started if they are not."""
        servers = self.find(project)
        within_s = self.config().start_s + LEEWAY_S
        problems: dict[str, str] = {}

        async def start(server: Server) -> None:
            why = f"it is not ready after {within_s:g} s"
            try:
                with trio.move_on_after(within_s):
                    await server.connect()
                    return
            except TakopiError as error:
                why = error.what
            problems[server.name] = f"MCP server {server.name}: {why}"

        async with trio.open_nursery() as nursery:
            for server in servers:
                nursery.start_soon(start, server)
        tools = tuple(tool for server in servers for tool in server.tools)
        return Offer(tools, tuple(problems.values()))

    def is_allowed(self, name: str) -> bool:
        """Whether the config lets this tool run without asking."""
        server = self._servers.get(name.partition("__")[0])
        return server is not None and any(
            fnmatchcase(name, pattern) for pattern in server.settings.allow
        )

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool by its whole name; the caller sets the deadline."""
        prefix, _, tool = name.partition("__")
        server = self._servers.get(prefix)
        if server is None:
            raise Refused(f"there is no MCP server {prefix}")
        connection = await server.connect()
        return await connection.call(tool, arguments, max_bytes=self.config().max_output_bytes)

    def describe(self) -> list[str]:
        """One line for each server: how it is, and its tools."""
        self._configure()
        return [_describe(server) for server in self._servers.values()]

    def _configure(self) -> None:
        """Let the servers be those of the config; one whose table has changed starts anew."""
        config = self.config()
        for name, server in list(self._servers.items()):
            if config.servers.get(name) != server.settings:
                server.cancel_scope.cancel()
                del self._servers[name]
        for name, settings in config.servers.items():
            if name not in self._servers:
                server = self._servers[name] = Server(name, settings, self.around)
                self.nursery.start_soon(server.serve, config.start_s, name=f"mcp server {name}")


def _fits(settings: McpServer, project: str | None) -> bool:
    if not settings.projects:
        return True
    return project is not None and project.lower() in map(str.lower, settings.projects)


def _describe(server: Server) -> str:
    if server.is_connected:
        names = [tool.name for tool in server.tools]
        return f"{server.name} ({', '.join(names) or 'no tools'})"
    return f"{server.name} ({server.problem or 'not started'})"


def _reason(error: BaseException) -> str:
    """The first plain error of nested groups, in one line."""
    if isinstance(error, BaseExceptionGroup):
        return _reason(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, TakopiError):
        return error.what
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
