"""`takopi` on a terminal of its own, while the test's servers go on serving."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.botapi.api import BotApi
from tests.botapi.server import serve_botapi
from tests.cli.command import Outcome, Takopi
from tests.e2e.rig import ADA, new_token
from tests.warm.client import WarmProcess

WITHIN_S = 120.0
CODE = re.compile(r"\?start=([0-9]{8})\b")


class Terminal:
    """What is seen of one `takopi`, and the keyboard before it."""

    def __init__(self, process: subprocess.Popen[bytes] | WarmProcess, end: int) -> None:
        self.process = process
        self.seen = ""
        self._end = end
        self._unread = ""

    async def asks(self, question: str) -> None:
        """Wait until this has appeared, and the process waits for what comes of it."""
        with trio.fail_after(WITHIN_S):
            while question not in self._unread:
                assert await self._read(), f"{question!r} was never asked:\n{self.seen}"
            self._unread = self._unread.partition(question)[2]
            # No person types between a question and the reading of its answer, as a test can.
            while True:
                if _is_asleep(self.process.pid):
                    return
                await trio.sleep(0.001)

    async def code(self) -> str:
        """The code of the pairing, once it is shown."""
        await self.asks("Waiting")
        return CODE.findall(self.seen)[-1]

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    async def answer(self, question: str, text: str) -> None:
        await self.asks(question)
        self.type(text)

    async def kill(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        await self.ends()

    async def ends(self) -> int:
        """The exit code, once all that it says has been seen."""
        with trio.fail_after(WITHIN_S):
            while await self._read():
                pass
            return await trio.to_thread.run_sync(self.process.wait)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)

    async def _read(self) -> bool:
        await trio.lowlevel.wait_readable(self._end)
        try:
            chunk = os.read(self._end, 65536)
        except OSError:  # EIO is how Linux says that nobody holds the other end any more
            return False
        self.seen += chunk.decode()
        self._unread += chunk.decode()
        return bool(chunk)


def _is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"S"


@asynccontextmanager
async def open_terminal(takopi: Takopi, *args: str) -> AsyncGenerator[Terminal, None]:
    terminal = Terminal(*takopi.start_on_terminal(args))
    try:
        yield terminal
    finally:
        terminal.close()


async def without_terminal(takopi: Takopi, *args: str, stdin: str = "") -> Outcome:
    """Run to the end with nobody to ask, while the servers of this process serve."""
    return await trio.to_thread.run_sync(lambda: takopi(*args, stdin=stdin))


@asynccontextmanager
async def open_botapi() -> AsyncGenerator[BotApi, None]:
    """A Bot API with a bot of its own, whose lock does not stay behind."""
    async with serve_botapi(token=new_token()) as api:
        api.person(ADA)
        try:
            yield api
        finally:
            bot_id = api.token.partition(":")[0]
            for machine in (Path(f"/run/user/{os.getuid()}"), Path("/tmp")):
                (machine / f"takopi-bot-{bot_id}.lock").unlink(missing_ok=True)


def config(takopi: Takopi) -> dict[str, Any]:
    return tomllib.loads(takopi.config_file.read_text(encoding="utf-8"))
