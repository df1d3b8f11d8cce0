"""The daemon as a person runs it: a real process, a home of its own, a Bot API on loopback."""

from __future__ import annotations

import os
import secrets
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import trio

from tests.botapi.api import BotApi
from tests.botapi.chats import Chat, Message, Topic
from tests.botapi.person import Person
from tests.botapi.presses import Answered
from tests.kit.processes import MARK, alive, new_mark
from tests.projects.repos import ENVIRON, make_repo
from tests.warm import client as warm
from tests.warm.client import WarmProcess

ADA = 1001
BIN = Path(sys.executable).parent
WITHIN_S = 60.0
"""How long anything may take on a machine that is busy with other tests."""

Look = Callable[[Message], bool]


def new_token() -> str:
    """A token of a bot that no other test has."""
    # Hypothesis seeds `random` alike in every process and every example.
    return f"{10**9 + secrets.randbelow(9 * 10**9)}:AAHloopback-token-of-the-tests-00000"


@dataclass
class Rig:
    """One takopi: its home, its projects, and its process, if one is running."""

    api: BotApi
    folder: Path
    mark: str = field(default_factory=new_mark)
    process: subprocess.Popen[bytes] | WarmProcess | None = None
    is_warm: bool = False
    """Whether takopi is forked from a process that has imported it."""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def cwd(self) -> Path:
        """Where takopi is started."""
        return self.folder / "start"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    @property
    def ada(self) -> Person:
        return self.api.person(ADA)

    @property
    def chat(self) -> Chat:
        """Ada's private chat."""
        return self.ada.chat

    @property
    def transcript(self) -> str:
        return self.chat.transcript()

    def configure(self, text: str = "") -> None:
        """Write the config: the demo engine, this test's server, and what the test adds."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.cwd.mkdir(exist_ok=True)
        file = self.home / "takopi.toml"
        file.touch(0o600)
        file.write_text(
            f'api_url = "{self.api.url}"\nchat_id = {ADA}\ndefault_engine = "demo"\n'
            # What is takopi's own does not reach a child, unless its table says so.
            f'demo.env.{MARK} = "{self.mark}"\n{text}\n',
            encoding="utf-8",
        )

    def project(self, alias: str) -> Path:
        """A repository that can be configured as a project."""
        return make_repo(self.folder / alias)

    @property
    def environ(self) -> dict[str, str]:
        kept = {k: v for k, v in ENVIRON.items() if not k.startswith(("TAKOPI_", "PYTHON"))}
        return kept | {
            "HOME": str(self.folder),
            "TAKOPI_HOME": str(self.home),
            "TAKOPI_BOT_TOKEN": self.api.token,
            MARK: self.mark,
            "PATH": os.environ["PATH"],
        }

    def launch(self, *args: str, without: str = "") -> None:
        """Start the daemon, whatever comes of it, in an environment without that variable."""
        assert self.process is None
        if self.is_warm:
            self.fork("takopi", ["-v", *args], without=without)
        else:
            self.spawn([str(BIN / "takopi"), "-v", *args], without=without)

    def spawn(self, argv: Sequence[str], *, without: str) -> None:
        """Start a program with what this takopi has."""
        with self._streams() as (nothing, log):
            self.process = subprocess.Popen(
                argv,
                cwd=self.cwd,
                env=self._environ_without(without),
                stdin=nothing,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def fork(self, program: str, args: Sequence[str], *, without: str) -> None:
        """Start it without importing takopi again."""
        with self._streams() as (nothing, log):
            self.process = warm.start(
                args,
                program=program,
                kind="daemon",
                cwd=self.cwd,
                env=self._environ_without(without),
                fds=(nothing.fileno(), log.fileno(), log.fileno()),
                start_new_session=True,
            )

    @contextmanager
    def _streams(self) -> Generator[tuple[BinaryIO, BinaryIO]]:
        with Path(os.devnull).open("rb") as nothing, (self.folder / "log").open("ab") as log:
            yield nothing, log

    def _environ_without(self, name: str) -> dict[str, str]:
        return {k: v for k, v in self.environ.items() if k != name}

    async def start(self, *args: str) -> None:
        """Start the daemon, and wait until it listens."""
        began = trio.current_time()
        self.launch(*args)
        async with trio.open_nursery() as nursery:

            async def notice_end() -> None:
                await self._ended()
                raise AssertionError(f"takopi ended at once:\n{self.log}")

            nursery.start_soon(notice_end)
            await self.api.wait_for_request(
                lambda request: request.method == "getUpdates" and request.at_s >= began,
                within_s=WITHIN_S,
            )
            nursery.cancel_scope.cancel()

    def send_signal(self, number: int = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end of the process."""
        self.send_signal(number)
        return await self.wait()

    async def wait(self) -> int:
        """The exit code, once the process has ended."""
        with trio.fail_after(WITHIN_S):
            await self._ended()
        process, self.process = self.process, None
        assert process is not None
        return process.wait()

    async def _ended(self) -> None:
        assert self.process is not None
        handle = os.pidfd_open(self.process.pid)
        try:
            await trio.lowlevel.wait_readable(handle)
        finally:
            os.close(handle)

    def alive(self) -> list[int]:
        """Every process of this test's takopi that lives, whoever its parent is."""
        own = {self.process.pid} if self.process and self.process.poll() is None else set[int]()
        return sorted({*alive(self.mark), *own})

    async def say(
        self,
        text: str,
        *,
        to: Message | None = None,
        quote: str | None = None,
        chat: Chat | None = None,
        topic: Topic | None = None,
    ) -> Message:
        """Ada writes, in her own chat unless told otherwise."""
        return await self.ada.send(chat or self.chat, text, reply_to=to, quote=quote, topic=topic)

    async def sees(self, look: Look, *, chat: Chat | None = None) -> Message:
        """The first message of the bot that looks so."""
        return await self.ada.sees(look, chat=chat, within_s=WITHIN_S)

    async def sees_text(self, *parts: str, chat: Chat | None = None) -> Message:
        """The first message of the bot that has all these parts."""
        return await self.sees(lambda m: all(part in m.text for part in parts), chat=chat)

    async def reply(self, to: Message, *parts: str) -> Message:
        """The first message of the bot in reply to this one that has all these parts."""
        return await self.sees(
            lambda m: m.reply_to is to and all(part in m.text for part in parts), chat=to.chat
        )

    async def progress(self, to: Message, *parts: str) -> Message:
        """The message that shows the run of this prompt."""
        return await self.sees(
            lambda m: m.reply_to is to and m.silent and all(part in m.text for part in parts),
            chat=to.chat,
        )

    async def ending(self, to: Message, status: str = "done") -> Message:
        """The answer to this prompt, whose run ended so."""
        return await self.sees(
            lambda m: m.reply_to is to and m.text.startswith(f"{status} · "), chat=to.chat
        )

    async def answer(self, text: str, *, to: Message | None = None) -> Message:
        """Send a prompt, and wait for its answer."""
        return await self.ending(await self.say(text, to=to))

    async def press(self, message: Message, label: str) -> Answered:
        """Press a button, and wait for what the bot answers to that."""
        pressed = await self.ada.press(message, label)
        return await pressed.answered(within_s=WITHIN_S)

    async def until(self, look: Callable[[Chat], bool], *, chat: Chat | None = None) -> None:
        """Until a chat looks so."""
        await (chat or self.chat).wait_until(look, within_s=WITHIN_S)

    async def until_settled(self, updates: int) -> None:
        """Until so many updates have been handled, whatever came of them."""
        settled = "SELECT count(*) FROM inbox WHERE state NOT IN ('new', 'taken')"
        await self.until_so(lambda: self.rows(settled)[0][0] >= updates)

    async def until_logged(self, part: str) -> None:
        """Until this stands in the log."""
        await self.until_so(lambda: part in self.log)

    async def until_so(self, look: Callable[[], bool]) -> None:
        """Until what another process does to its files and processes is so."""
        # Neither SQLite nor a file tells another process of a change.
        with trio.fail_after(WITHIN_S):
            while True:
                if look():
                    return
                await trio.sleep(0.05)

    async def until_confirmed(self) -> None:
        """Until the bot has taken note of every update there is so far."""
        updates = self.api.updates
        await updates.wait_until_confirmed(updates.next_id - 1, within_s=WITHIN_S)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What is in the store."""
        file = f"file:{self.home / 'state.db'}?mode=ro"
        with closing(sqlite3.connect(file, uri=True)) as conn:
            return conn.execute(query, values).fetchall()


@asynccontextmanager
async def open_rig(
    api: BotApi, folder: Path, *, is_warm: bool = False
) -> AsyncGenerator[Rig, None]:
    rig = Rig(api, folder, is_warm=is_warm)
    rig.configure()
    try:
        yield rig
    finally:
        if rig.process is not None:
            rig.process.kill()
            rig.process.wait()
        bot_id = api.token.partition(":")[0]
        for machine in (Path(f"/run/user/{os.getuid()}"), Path("/tmp")):
            (machine / f"takopi-bot-{bot_id}.lock").unlink(missing_ok=True)
