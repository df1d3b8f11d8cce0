"""The telegram room with a real store, against the loopback Bot API."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
import structlog
import trio

from takopi.config.limits import Limits
from takopi.config.loaded import Config
from takopi.config.schema import Oneshot
from takopi.core.errors import TakopiError
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Arrival, IncomingMessage
from takopi.core.outgoing import Attachment, Button, Card, Mark, Outgoing, Text
from takopi.files.spool import Spool
from takopi.routing.authorize import Envelope, Gate
from takopi.store import outbox
from takopi.store.database import Database, open_database
from takopi.telegram.hooks import Hooks
from takopi.telegram.times import Times
from takopi.telegram.transport import TelegramTransport, open_telegram
from tests.botapi.api import BotApi
from tests.botapi.chats import Message

T = TypeVar("T")

ADA = 1001
BOB = 1002
GROUP = -1002000
SCOPE = Scope("telegram", ADA)

QUICK = Times(poll_s=2, answer_s=0.5, empty_s=0.1, conflict_s=0.3, request_s=1.0, stop_s=1.0)


def config_for(api: BotApi, *, chat_id: int = ADA, people: frozenset[int] = frozenset()) -> Config:
    return Config(
        bot_token=api.token,
        chat_id=chat_id,
        allowed_user_ids=people,
        admin_user_ids=frozenset(),
        default_engine=None,
        default_project=None,
        session_mode="reply",
        api_url=api.url,
        transports=("telegram",),
        projects={},
        oneshot=Oneshot(),
        limits=Limits(),
        engines={},
    )


@dataclass(slots=True)
class Heard:
    """What the hooks were told, in the order they were."""

    troubles: list[TakopiError] = field(default_factory=list[TakopiError])
    polls: int = 0
    failures: list[TakopiError | None] = field(default_factory=list[TakopiError | None])
    polled: trio.Event = field(default_factory=trio.Event)
    topics: list[Scope] = field(default_factory=list[Scope])
    moves: list[tuple[Scope, Scope]] = field(default_factory=list[tuple[Scope, Scope]])
    lost: list[tuple[MessageRef, Card]] = field(default_factory=list[tuple[MessageRef, Card]])
    on_lost: Callable[[MessageRef, Card], None] = lambda _ref, _card: None

    def count_poll(self, failure: TakopiError | None) -> None:
        self.polls += 1
        self.failures.append(failure)
        self.polled.set()
        self.polled = trio.Event()

    async def wait_polls(self, count: int) -> None:
        """Until so many attempts to receive have ended."""
        with trio.fail_after(20):
            while self.polls < count:
                await self.polled.wait()

    @property
    def hooks(self) -> Hooks:
        return Hooks(
            on_trouble=self.troubles.append,
            on_poll_end=self.count_poll,
            on_topic_gone=self.topics.append,
            on_chat_moved=lambda old, new: self.moves.append((old, new)),
            on_edit_lost=self.lose,
        )

    def lose(self, ref: MessageRef, card: Card) -> None:
        self.lost.append((ref, card))
        self.on_lost(ref, card)


class Log:
    """Every line that is logged, as soon as it is."""

    def __init__(self) -> None:
        self.lines: list[MutableMapping[str, Any]] = []
        self._logged = trio.Event()

    def __call__(self, _logger: Any, _name: str, line: MutableMapping[str, Any]) -> NoReturn:
        self.lines.append(line)
        self._logged.set()
        self._logged = trio.Event()
        raise structlog.DropEvent

    async def wait_for(self, event: str) -> None:
        with trio.fail_after(20):
            while not any(line["event"] == event for line in self.lines):
                await self._logged.wait()


@contextmanager
def watch_log() -> Generator[Log, None, None]:
    """Hear of every line instead of writing it."""
    log = Log()
    before = structlog.get_config()["processors"]
    structlog.configure(processors=[log])
    try:
        yield log
    finally:
        structlog.configure(processors=before)


class Commits:
    """Tells of every commit; it happens in the store's own thread."""

    def __init__(self) -> None:
        self.next = trio.Event()
        self._token = trio.lowlevel.current_trio_token()

    def note(self) -> None:
        self._token.run_sync_soon(self._tell)

    def _tell(self) -> None:
        self.next.set()
        self.next = trio.Event()


@dataclass(frozen=True, slots=True)
class Rig:
    """One start of the room. `stop` ends its services as the daemon would."""

    api: BotApi
    db: Database
    telegram: TelegramTransport
    heard: Heard
    commits: Commits
    services: trio.Nursery
    spool: Spool

    async def say(self, text: str | Outgoing, *, scope: Scope = SCOPE) -> None:
        """Put something into the store's outbox, and tell the transport."""
        message = card(text) if isinstance(text, str) else text
        file = message.attachment and message.attachment.spooled
        await self.store(msgspec.msgpack.encode(message), scope=scope, file=file)
        self.telegram.wake(scope)

    async def store(self, payload: bytes, *, scope: Scope = SCOPE, file: str | None = None) -> None:
        """Put something into the store's outbox, and tell nobody."""
        await self.db.write(
            lambda conn: outbox.add(
                conn, scope, kind="answer", payload=payload, now_ms=1, spooled=file
            )
        )

    async def next_arrival(self, within_s: float = 20) -> Arrival:
        with trio.fail_after(within_s):
            return await self.telegram.incoming.receive()

    async def states(self) -> list[str]:
        """The states of everything in the store's outbox, oldest first."""
        return await self.db.read(
            lambda conn: [row["state"] for row in conn.execute("SELECT state FROM outbox")]
        )

    async def until(self, look: Callable[[sqlite3.Connection], bool], within_s: float = 20) -> None:
        """Wait until the store looks so."""
        with trio.fail_after(within_s):
            while True:
                committed = self.commits.next
                if await self.db.read(look):
                    return
                await committed.wait()

    async def until_states(self, *states: str) -> None:
        await self.until(
            lambda conn: (
                [row["state"] for row in conn.execute("SELECT state FROM outbox ORDER BY id")]
                == list(states)
            )
        )


RETRY = ((Button("Retry", "rn:retry:1"),),)


def shown(text: str) -> Card:
    return Card(Text(text))


def card(
    text: str,
    *,
    marks: tuple[Mark, ...] = (),
    buttons: tuple[tuple[Button, ...], ...] = (),
    reply_to: int | None = None,
    removes: int | None = None,
    attachment: Attachment | None = None,
    silent: bool = False,
) -> Outgoing:
    return Outgoing(
        Card(Text(text, marks), buttons),
        attachment=attachment,
        reply_to=reply_to,
        removes=removes,
        silent=silent,
    )


@asynccontextmanager
async def open_rig(
    api: BotApi,
    folder: Path,
    *,
    config: Config | None = None,
    times: Times = QUICK,
    poll: bool = False,
    allows: Callable[[Envelope], bool] | None = None,
) -> AsyncGenerator[Rig, None]:
    """Start the room on the state in `folder`; at the end it stops as the daemon would."""
    heard, commits = Heard(), Commits()
    config = config or config_for(api)
    with trio.fail_after(60):
        async with (
            open_database(folder / "state.db", on_commit=commits.note, busy_s=0.1) as db,
            trio.open_nursery() as stores,
            open_telegram(
                config,
                db,
                allows=allows or Gate(config).allows,
                spool=(spool := Spool(folder / "spool", db)),
                hooks=heard.hooks,
                times=times,
            ) as telegram,
        ):
            await stores.start(db.serve)
            await spool.prepare()
            async with trio.open_nursery() as services:
                await services.start(telegram.outbox.serve)
                async with trio.open_nursery() as front:
                    if poll:
                        front.start_soon(telegram.poll)
                    try:
                        yield Rig(api, db, telegram, heard, commits, services, spool)
                    finally:
                        front.cancel_scope.cancel()
                services.cancel_scope.cancel()
            stores.cancel_scope.cancel()


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


async def next_message(rig: Rig) -> IncomingMessage:
    what = (await rig.next_arrival()).what
    assert isinstance(what, IncomingMessage)
    return what
