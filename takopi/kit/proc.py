"""Child processes of which nothing is left when the block that opened them ends.

The keeper (see `keeper.py`) does the work; this is the owner's side of it.
"""

from __future__ import annotations

import array
import contextlib
import errno
import os
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL

import trio

from takopi.core.errors import CannotStart, ChildLost, Unfit
from takopi.kit import keeper as keeper_program

START_S = 30.0
"""How long a child may take to start: generous, for a machine that swaps."""

KILL_S = 5.0
"""How long we wait after SIGKILL. A process that sits in the kernel may outlast even that."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. The environment is complete: nothing is inherited."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]

    def order(self, *, grace_s: float) -> bytes:
        """The words in which the child's warden is told."""
        words = [*self.argv, *(f"{key}={value}" for key, value in self.env.items())]
        if not self.argv or any("\0" in word for word in words):
            raise CannotStart("a command needs a program, and no NUL bytes", errno=errno.EINVAL)
        body = b"\0".join(map(os.fsencode, (self.cwd.absolute(), *words)))
        header = f"{len(body)} {len(self.argv)} {grace_s * 1000:.0f}"
        return header.ljust(keeper_program.ORDER_HEADER_BYTES).encode() + body


class Child:
    """One started child. `wait` may be awaited by several tasks."""

    def __init__(
        self, link: socket.socket, stdio: tuple[int, int, int], *, program: str, grace_s: float
    ) -> None:
        self.stdin: trio.abc.SendStream = trio.lowlevel.FdStream(stdio[0])
        self.stdout: trio.abc.ReceiveStream = trio.lowlevel.FdStream(stdio[1])
        self.stderr: trio.abc.ReceiveStream = trio.lowlevel.FdStream(stdio[2])
        self.pid = 0
        self.code: int | None = None
        self.cleared = False
        """Whether it and every descendant is known to be gone."""
        self._link = trio.SocketStream(trio.socket.from_stdlib_socket(link))
        self._program = program
        self._grace_s = grace_s
        self._turn = trio.Lock()
        self._heard = b""
        self._ready = False
        self._link_ended = False

    async def wait(self) -> int:
        """Wait until the child itself has ended; its descendants are being ended then."""
        await self._hear_until(lambda: self.code is not None)
        if self.code is None:
            raise ChildLost(f"the process that watched over {self._program} was ended")
        return self.code

    async def wait_cleared(self) -> None:
        """Wait until the child and all its descendants are gone."""
        await self._hear_until(lambda: self.cleared)

    async def wait_ready(self) -> bool:
        """Wait for the warden. False means that there is none, and never will be."""
        await self._hear_until(lambda: self._ready)
        return self._ready

    async def start(self, order: bytes) -> None:
        """Hand over the order and wait until the program runs."""
        with contextlib.suppress(trio.BrokenResourceError):
            await self._link.send_all(order)
        await self._hear_until(lambda: bool(self.pid))
        if not self.pid:
            raise ChildLost(f"the process that was to start {self._program} was ended")

    async def stop(self) -> None:
        """SIGTERM to the child and all its descendants, SIGKILL after the grace; no waiting."""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            if self.pid:
                await self._link.send_all(f"stop {self._grace_s * 1000:.0f}\n".encode())
            else:
                # The warden may still wait for the rest of its order.
                await self._link.send_eof()

    async def aclose(self) -> None:
        """Return when nothing of the child is left, or nothing more can be done about it."""
        with trio.move_on_after(self._grace_s + KILL_S, shield=True):
            if not self.cleared:
                await self.stop()
                await self.wait_cleared()
        self._link_ended = True
        with trio.CancelScope(shield=True):  # closing by force does not wait
            for stream in (self.stdin, self.stdout, self.stderr, self._link):
                await trio.aclose_forcefully(stream)

    async def _hear_until(self, reached: Callable[[], bool]) -> None:
        while not reached() and not self._link_ended:
            # One task reads for all who wait; a cancelled read has taken nothing.
            async with self._turn:
                if not reached() and not self._link_ended:
                    await self._hear()

    async def _hear(self) -> None:
        try:
            data = await self._link.receive_some(256)
        except trio.BrokenResourceError:
            data = b""
        self._link_ended = not data
        *words, self._heard = (self._heard + data).split(b"\n")
        for word in words:
            self._note(*word.decode().split())

    def _note(self, word: str, *facts: str) -> None:
        match word:
            case "ready":
                self._ready = True
            case "started":
                self.pid = int(facts[0])
            case "exited":
                self.code = int(facts[0])
            case "clear":
                self.cleared = True
            case _:
                self.cleared = True
                raise _cannot_start(self._program, stage=facts[0], reason=int(facts[1]))


def _cannot_start(program: str, *, stage: str, reason: int) -> CannotStart:
    what = "cannot enter the folder for" if stage == "chdir" else "cannot start"
    return CannotStart(f"{what} {program}: {os.strerror(reason)}", errno=reason)


class Keeper:
    """Starts children. They outlive a killed keeper process, and the next start brings another."""

    def __init__(self, *, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._lock = trio.Lock()
        self._process: trio.Process | None = None
        self._requests: trio.socket.SocketType | None = None

    @property
    def pid(self) -> int | None:
        """The keeper process, once there is one."""
        return None if self._process is None else self._process.pid

    @asynccontextmanager
    async def child(self, command: Command, *, grace_s: float) -> AsyncGenerator[Child, None]:
        """Start a child; when the block ends, so do it and all its descendants."""
        order = command.order(grace_s=grace_s)
        child = await self._find_warden(command.argv[0], grace_s=grace_s)
        try:
            with trio.fail_after(START_S):
                await child.start(order)
            yield child
        finally:
            await child.aclose()

    async def aclose(self) -> None:
        """Let the keeper process end; it does so when its last warden has."""
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            with trio.move_on_after(KILL_S, shield=True):
                await self._process.wait()

    async def _find_warden(self, program: str, *, grace_s: float) -> Child:
        for _ in range(3):
            link, stdio, their_link, their_stdio = _open_ends()
            child = Child(link, stdio, program=program, grace_s=grace_s)
            try:
                with their_link, trio.fail_after(START_S):
                    await self._request([their_link.fileno(), *their_stdio])
                # The warden has copies, and only its copies may keep the streams open.
                _close_all(their_stdio)
                with trio.fail_after(START_S):
                    if await child.wait_ready():
                        return child
            except BaseException:
                _close_all(their_stdio)
                await child.aclose()
                raise
            await child.aclose()
            if self._process is not None:
                with trio.move_on_after(1):
                    await self._process.wait()
        raise Unfit(
            "no more processes can be started", way_out="end some, or raise the limit (ulimit -u)"
        )

    async def _request(self, fds: list[int]) -> None:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
        async with self._lock:
            requests = await self._launch()
            # A keeper that died just now is noticed by the warden that never comes.
            with contextlib.suppress(OSError):
                await requests.sendmsg([b"+"], [rights])

    async def _launch(self) -> trio.socket.SocketType:
        if self._process is not None and self._process.poll() is not None:
            self._process = None
            self._on_lost()
        if self._process is None:
            if self._requests is not None:
                self._requests.close()
            ours, theirs = socket.socketpair()
            self._requests = trio.socket.from_stdlib_socket(ours)
            argv = [sys.executable, "-I", "-S", keeper_program.__file__, str(theirs.fileno())]
            with theirs:
                self._process = await trio.lowlevel.open_process(
                    argv,
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    pass_fds=[theirs.fileno()],
                    # Some Pythons find their own library through these, and need nothing else.
                    env={key: os.environ[key] for key in LIBRARY_PATHS if key in os.environ},
                    start_new_session=True,
                )
        assert self._requests is not None  # ruff: ignore[assert] for the type checker
        return self._requests


LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def _close_all(fds: list[int]) -> None:
    while fds:
        os.close(fds.pop())


def _open_ends() -> tuple[socket.socket, tuple[int, int, int], socket.socket, list[int]]:
    opened: list[int] = []
    try:
        for _ in range(3):
            opened += os.pipe()
        ours, theirs = socket.socketpair()
    except OSError as error:
        _close_all(opened)
        raise Unfit(
            f"no more processes can be started: {error.strerror}",
            way_out="raise the limit of open files (ulimit -n)",
        ) from error
    stdin, in_end, stdout, out_end, stderr, err_end = opened
    return ours, (in_end, stdout, stderr), theirs, [stdin, out_end, err_end]


@asynccontextmanager
async def open_keeper(*, on_lost: Callable[[], None]) -> AsyncGenerator[Keeper, None]:
    """A keeper for as long as the block lasts; `on_lost` hears of it when one was killed."""
    keeper = Keeper(on_lost=on_lost)
    try:
        yield keeper
    finally:
        await keeper.aclose()
