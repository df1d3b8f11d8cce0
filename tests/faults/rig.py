"""A daemon that is killed, stopped and cut off, and what its store and its engine tell of it."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from tests.botapi.api import BotApi
from tests.botapi.chats import Chat, Message
from tests.botapi.server import serve_botapi
from tests.e2e.rig import ADA, BIN, Rig, new_token
from tests.faults import daemon_child

WITHIN_S = 120.0
"""How long anything may take on a machine that is busy with other tests."""

PATIENT = "limits.max_queued = 1000\nlimits.user_per_min = 600\nlimits.max_runs = 8\n"
"""Limits that are in nobody's way."""

FIRST_UPDATE = 500_000_001

OPEN = (
    "SELECT 'inbox', id FROM inbox WHERE state IN ('new', 'taken')"
    " UNION ALL SELECT 'runs', id FROM runs WHERE state IN ('queued', 'running')"
    " UNION ALL SELECT 'outbox', id FROM outbox WHERE state IN ('waiting', 'sending', 'parked')"
)


@dataclass
class FaultRig(Rig):
    """One takopi that may have to be started many times. `before` are words before its own."""

    before: list[str] = field(default_factory=list[str])

    def launch(self, *args: str, without: str = "") -> None:
        """Start the daemon; arguments are those of `daemon_child`."""
        assert self.process is None
        if args and not self.before:
            self.fork("daemon_child", args, without=without)
        else:
            takopi = (
                [sys.executable, daemon_child.__file__] if args else [str(BIN / "takopi"), "-v"]
            )
            self.spawn([*self.before, *takopi, *args], without=without)

    @property
    def environ(self) -> dict[str, str]:
        # The child script imports takopi and the tests from where they are.
        return super().environ | {"PYTHONPATH": str(Path(__file__).parents[2])}

    def open_chats(self, count: int) -> list[Chat]:
        """So many private chats, Ada's first: each has its own pace, so none waits for another."""
        people = range(ADA, ADA + count)
        tables = [
            f'[projects.p{person}]\npath = "{self.project(f"p{person}")}"\nchat_id = {person}\n'
            for person in people[1:]
        ]
        self.configure(PATIENT + "".join(tables))
        return [self.api.person(person).chat for person in people]

    async def kill(self) -> None:
        """End the daemon as a power cut does."""
        assert await self.stop(signal.SIGKILL) == -signal.SIGKILL

    @property
    def starts(self) -> Counter[str]:
        """What the engine wrote down first in every run, in whatever folder it worked."""
        return Counter(
            line
            for file in sorted(self.folder.glob("*/starts.txt"))
            for line in file.read_text(encoding="utf-8").splitlines()
        )

    @property
    def is_over(self) -> bool:
        """Whether every update so far is in the store, and nothing waits, runs or is on its way."""
        sent = self.api.updates.next_id - FIRST_UPDATE
        known = self.rows("SELECT count(*) FROM inbox")
        return known[0][0] >= sent and not self.rows(OPEN)

    async def until_over(self) -> None:
        """Until everything that people did has come to its end."""
        await self.until_so(
            lambda: self.is_over, lambda: f"still open: {self.rows(OPEN)}\n{self.log[-3000:]}"
        )

    async def until_dead(self) -> bool:
        """Until the daemon dies by itself; False when everything is over before."""
        assert self.process is not None
        process = self.process
        await self.until_so(
            lambda: process.poll() is not None or self.is_over,
            lambda: f"neither dead nor done: {self.rows(OPEN)}\n{self.log[-3000:]}",
        )
        if process.poll() is None:
            return False
        self.process = None
        return True

    async def until_so(self, look: Callable[[], bool], why: Callable[[], str] = str) -> None:
        """Until something outside the chat looks so: neither files nor SQLite tell of changes."""
        with trio.move_on_after(WITHIN_S):
            while True:
                if look():
                    return
                await trio.sleep(0.05)
        raise AssertionError(why())

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What is in the store; nothing while it is not there."""
        try:
            return super().rows(query, *values)
        except sqlite3.OperationalError:
            return [(0,)] if "count" in query else []

    @property
    def runs(self) -> dict[str, list[str]]:
        """The states of all runs by their prompt, oldest first."""
        found: dict[str, list[str]] = {}
        for prompt, state in self.rows("SELECT prompt, state FROM runs ORDER BY id"):
            found.setdefault(prompt, []).append(state)
        return found


def endings(chat: Chat, prompt: Message) -> list[Message]:
    """What the bot ever said in answer to a prompt, progress left out."""
    return [m for m in chat.everything if m.by_bot and m.reply_to is prompt and not m.silent]


@asynccontextmanager
async def open_fault_rig(
    folder: Path, *, token: str | None = None
) -> AsyncGenerator[FaultRig, None]:
    """A takopi that has not been started, on a Bot API of its own, and nothing of it left after."""
    async with serve_botapi(token=token or new_token()) as api:
        # A daemon that was killed cannot know what its last edits came to.
        api.expect_rejection("message is not modified")
        api.person(ADA)
        rig = FaultRig(api, folder)
        rig.configure(PATIENT)
        try:
            yield rig
        finally:
            if rig.process is not None:
                rig.process.kill()
                rig.process.wait()
            _forget_lock(api)


def _forget_lock(api: BotApi) -> None:
    for folder in (Path(f"/run/user/{os.getuid()}"), Path("/tmp")):
        (folder / f"takopi-bot-{api.bot.id}.lock").unlink(missing_ok=True)
