"""`takopi demo` as a person runs it: a real process, with a TMPDIR of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.cli.command import BIN, Takopi
from tests.kit.processes import alive_with

WITHIN_S = 60.0
"""How long anything may take on a machine that is busy with other tests."""


class Demo:
    """One demo. Its folder, and those of its descendants, are below `tmp`, which they all know."""

    def __init__(self, folder: Path) -> None:
        self.tmp = folder / "tmp"
        self.tmp.mkdir()
        person = Takopi(folder)
        self.home = person.home
        self.environ = person.environ | {"TMPDIR": str(self.tmp)}
        self.process: trio.Process | None = None
        self.out = ""

    async def start(self, *args: str) -> None:
        self.process = await trio.lowlevel.open_process(
            # The workers of pytest ignore Ctrl-C, and would hand this down.
            ["env", "--default-signal=INT", BIN / "takopi", "demo", *args],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    async def until_printed(self, part: str) -> None:
        """Read on until this was printed."""
        assert self.process is not None
        assert self.process.stdout is not None
        with trio.fail_after(WITHIN_S):
            while part not in self.out:
                piece = await self.process.stdout.receive_some()
                assert piece, f"it ended without {part!r}:\n{self.out}"
                self.out += piece.decode()

    async def ended(self) -> int:
        """The exit code, once it has ended and all that it printed is read."""
        assert self.process is not None
        assert self.process.stdout is not None
        with trio.fail_after(WITHIN_S):
            async for piece in self.process.stdout:
                self.out += piece.decode()
            return await self.process.wait()

    @property
    def url(self) -> str:
        """The address that it printed."""
        return next(word for word in self.out.split() if word.startswith("http://"))

    def alive(self) -> list[int]:
        """Every process that was started by this demo, and the demo itself."""
        return alive_with("TMPDIR", str(self.tmp))

    async def until_alive(self, count: int) -> None:
        with trio.fail_after(WITHIN_S):
            # The kernel has no event for the number of processes.
            while True:
                if len(self.alive()) >= count:
                    return
                await trio.sleep(0.02)

    async def until_gone(self) -> None:
        with trio.fail_after(WITHIN_S):
            while True:
                if not self.alive():
                    return
                await trio.sleep(0.02)


@asynccontextmanager
async def open_demo(folder: Path) -> AsyncGenerator[Demo, None]:
    demo = Demo(folder)
    try:
        yield demo
    finally:
        for pid in demo.alive():
            os.kill(pid, signal.SIGKILL)
        if demo.process is not None and demo.process.stdout is not None:
            with trio.move_on_after(WITHIN_S, shield=True):
                await demo.process.wait()
                await demo.process.stdout.aclose()
