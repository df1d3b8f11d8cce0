"""The desk with everything real behind it but the chat, which only takes notes."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec
import trio

from takopi.app.commands.registry import COMMANDS
from takopi.app.desk import Call, Desk
from takopi.app.drafting import draft_ports, open_parts
from takopi.app.filing import Intake
from takopi.app.interviewing import InterviewHost
from takopi.app.presses import register
from takopi.app.turns import Turns
from takopi.config.limits import Limits
from takopi.config.loaded import Config, Project
from takopi.config.schema import EngineSettings, Oneshot, SessionMode
from takopi.core.errors import TakopiError
from takopi.core.ids import EngineId, InboxId, MessageRef, ResumeToken, RunId, Scope
from takopi.core.messages import Incoming, IncomingMessage, Press
from takopi.core.outgoing import Card, Outgoing
from takopi.drafts.service import Drafts
from takopi.engines.catalog import load_catalog
from takopi.engines.registry import open_engines
from takopi.files.spool import Spool
from takopi.interview.service import Interviews
from takopi.interview.store import Files
from takopi.kit.proc import open_keeper
from takopi.oneshot.asker import Asker
from takopi.oneshot.demo import Demo
from takopi.projects.worktrees import Worktrees
from takopi.runs.asks import Asks
from takopi.runs.live import Live
from takopi.runs.request import Requests
from takopi.runs.schedule import Schedule
from takopi.runs.workshop import Workshop
from takopi.store import inbox, ledger, outbox, scopes
from takopi.store.database import Database, open_database
from takopi.store.inbox import Received
from takopi.store.ledger import Run
from takopi.telegram.buttons import Registry

ADA = 1001
GROUP = -1002000
CHAT = Scope("telegram", ADA)
DEMO = EngineId("demo")
SOON_S = 60.0
SILENT = ""
"""A press that was answered, and shows nothing."""


class Recorder:
    """A transport that notes what it is asked for. Topics are made unless `topic_error` is set."""

    name = "telegram"
    bot_name = "takopi_bot"
    max_units = 4085

    def __init__(self) -> None:
        self.sent: dict[MessageRef, Outgoing] = {}
        self.edits: list[tuple[MessageRef, Card]] = []
        self.cleared: list[MessageRef] = []
        self.deleted: list[MessageRef] = []
        self.answers: dict[str, list[str]] = {}
        self.log: list[str] = []
        self.topics: list[str] = []
        self.topic_error: TakopiError | None = None
        self.is_stuck = False
        self.changed = trio.Event()
        self._last_message = 5000

    def _note(self, what: str) -> None:
        self.log.append(what)
        self.changed.set()
        self.changed = trio.Event()

    def next_id(self) -> int:
        self._last_message += 1
        return self._last_message

    async def send(self, scope: Scope, message: Outgoing) -> MessageRef:
        await trio.lowlevel.checkpoint()
        ref = MessageRef(scope.transport, scope.chat_id, self.next_id())
        self.sent[ref] = message
        self._note("send")
        return ref

    def edit(self, ref: MessageRef, card: Card) -> None:
        self.edits.append((ref, card))
        self._note("edit")

    def clear_buttons(self, ref: MessageRef) -> None:
        self.cleared.append(ref)
        self._note("clear")

    def delete(self, ref: MessageRef) -> None:
        self.deleted.append(ref)
        self._note("delete")

    def acknowledge(self, press: Press, text: str = "", *, alert: bool = False) -> None:
        del alert
        self.answers.setdefault(press.id, []).append(text)
        self._note("acknowledge")

    def wake(self, chat: Scope) -> None:
        del chat
        self._note("wake")

    async def settle(self, chat: Scope) -> None:
        del chat
        await trio.lowlevel.checkpoint()

    async def create_topic(self, chat: Scope, name: str) -> Scope:
        await trio.lowlevel.checkpoint()
        if self.is_stuck:
            self._note("stuck")
            await trio.sleep_forever()
        if self.topic_error is not None:
            raise self.topic_error
        self.topics.append(name)
        return Scope(chat.transport, chat.chat_id, 70 + len(self.topics))


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message from the outbox, as it arrived."""

    ref: MessageRef
    scope: Scope
    message: Outgoing

    @property
    def text(self) -> str:
        return self.message.card.text.text

    @property
    def labels(self) -> list[str]:
        return [button.label for row in self.message.card.buttons for button in row]

    def data(self, label: str) -> str:
        """What the button with this label carries."""
        buttons = (button for row in self.message.card.buttons for button in row)
        return next(button.data for button in buttons if button.label == label)


@dataclass(slots=True)
class Rig:
    """A desk, its chat, and the hands of the person in it."""

    desk: Desk
    transport: Recorder
    db: Database
    registry: Registry
    settings: dict[str, Config]
    incoming: dict[InboxId, Incoming]
    presses: int = 0
    arrived: list[Arrived] = field(default_factory=list[Arrived])

    def install(self, name: str, script: str) -> None:
        """Put a program where engines are looked for."""
        program = self.desk.shop.start_cwd / name
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o700)

    @property
    def config(self) -> Config:
        return self.settings["now"]

    @config.setter
    def config(self, config: Config) -> None:
        self.settings["now"] = config

    async def type(
        self,
        text: str,
        *,
        scope: Scope = CHAT,
        reply_to: int | None = None,
    ) -> list[Arrived]:
        """Type a command, and see what comes back."""
        name, _, args = text.removeprefix("/").partition(" ")
        message = message_of(self.transport.next_id(), text, scope=scope, reply_to=reply_to)
        with trio.fail_after(SOON_S):
            await COMMANDS[name](self.desk, Call(name, args.strip(), message))
        return await self.flush()

    async def press(
        self, on: Arrived | MessageRef, data: str, *, scope: Scope | None = None
    ) -> str:
        """Press a button; returns the one answer that the press got."""
        self.presses += 1
        ref = on.ref if isinstance(on, Arrived) else on
        where = scope or (
            on.scope if isinstance(on, Arrived) else Scope(ref.transport, ref.chat_id)
        )
        press = Press(str(self.presses), where, ref.message_id, ADA, data)
        handle = self.registry.route(press)
        assert handle is not None, data
        with trio.fail_after(SOON_S):
            await handle()
        (answer,) = self.transport.answers[press.id]
        return answer

    async def flush(self) -> list[Arrived]:
        """Let everything that waits in the outbox arrive; returns what that was."""
        arrived: list[Arrived] = []
        for chat in {CHAT, Scope("telegram", GROUP)}:
            while send := await self.db.write(
                lambda conn, chat=chat: outbox.take_next(conn, chat, now_ms=2**50)
            ):
                message_id = self.transport.next_id()
                await self.db.write(
                    lambda conn, send=send, message_id=message_id: outbox.confirm(
                        conn, send.id, message_id=message_id, now_ms=1
                    )
                )
                ref = MessageRef(chat.transport, chat.chat_id, message_id)
                message = msgspec.msgpack.decode(send.payload, type=Outgoing)
                arrived.append(Arrived(ref, send.scope, message))
        self.arrived += arrived
        return arrived

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until the chat was told something that makes it so."""
        with trio.fail_after(SOON_S):
            while not is_so():
                await self.transport.changed.wait()

    async def ended(self, run_id: RunId) -> Run:
        """The run, once its ending is written."""
        with trio.fail_after(SOON_S):
            while True:
                changed = self.transport.changed
                run = await self.run(run_id)
                if run.state not in {"queued", "running"}:
                    return run
                await changed.wait()

    async def working(self, run_id: RunId) -> Live:
        """The run, once its engine has said which thread it is."""
        live = self.desk.schedule.find(run_id)
        assert live is not None
        await self.until(lambda: live.thread is not None)
        return live

    async def start(self, prompt: str, *, scope: Scope = CHAT) -> RunId:
        """Let a message become a run, as it does when it comes in."""
        message_id = self.transport.next_id()
        message = message_of(message_id, prompt, scope=scope)
        inbox_id = await self.receive(message)
        with trio.fail_after(SOON_S):
            await self.desk.requests.from_message(message, inbox_id)
        return (await self.runs())[0].id

    async def receive(self, message: IncomingMessage) -> InboxId:
        """Put a message into the inbox."""
        update = inbox.Update(message.message_id, message.chat_id, message.text.encode())
        (row,) = await self.db.write(
            lambda conn: inbox.record(
                conn, "telegram:1", updates=[update], next_offset=None, now_ms=1
            )
        )
        self.incoming[row.id] = message
        return row.id

    async def run(self, run_id: RunId) -> Run:
        run = await self.db.read(lambda conn: ledger.find(conn, run_id))
        assert run is not None
        return run

    async def runs(self) -> tuple[Run, ...]:
        return await self.db.read(lambda conn: ledger.last(conn, 100))

    async def choices(self, scope: Scope = CHAT) -> scopes.Choices:
        return await self.db.read(lambda conn: scopes.get(conn, scope))

    async def choose(self, choices: scopes.Choices, *, scope: Scope = CHAT) -> None:
        await self.db.write(lambda conn: scopes.put(conn, scope, choices))

    def card(self, ref: MessageRef) -> Card:
        """How a message reads after its last edit."""
        return [card for edited, card in self.transport.edits if edited == ref][-1]


def message_of(
    message_id: int, text: str, *, scope: Scope = CHAT, reply_to: int | None = None
) -> IncomingMessage:
    return IncomingMessage(
        scope.transport,
        scope.chat_id,
        message_id,
        text,
        reply_to,
        None,
        ADA,
        thread_id=scope.topic_id,
        chat_type="private" if scope.chat_id > 0 else "supergroup",
    )


def token(value: str) -> ResumeToken:
    return ResumeToken(DEMO, value)


def config_with(
    *projects: Project,
    session_mode: SessionMode = "reply",
    limits: Limits | None = None,
    engines: Mapping[str, EngineSettings] | None = None,
    default_project: str | None = None,
) -> Config:
    return Config(
        bot_token="",
        chat_id=ADA,
        allowed_user_ids=frozenset(),
        admin_user_ids=frozenset(),
        default_engine=None,
        default_project=default_project,
        session_mode=session_mode,
        api_url="",
        transports=("telegram",),
        projects={project.alias: project for project in projects},
        oneshot=Oneshot(),
        limits=limits or Limits(),
        engines=engines or {},
    )


@asynccontextmanager
async def open_rig(folder: Path, config: Config | None = None) -> AsyncGenerator[Rig, None]:
    """One start of everything that a command can reach, with its state in `folder`."""
    transport = Recorder()
    settings = {"now": config or config_with()}
    incoming: dict[InboxId, Incoming] = {}
    cwd = folder / "cwd"
    cwd.mkdir(exist_ok=True)
    # Nothing but the demo engine, which is part of takopi, is installed.
    environ = {"PATH": str(cwd), "HOME": str(folder)}

    async def fetch(_scope: Scope, file_id: str) -> BinaryIO:
        await trio.lowlevel.checkpoint()
        return io.BytesIO(file_id.encode())

    def reread(received: Received) -> Incoming | None:
        return incoming.get(received.id)

    async with (
        open_database(folder / "state.db") as db,
        open_keeper(on_lost=lambda: None) as keeper,
        open_engines(load_catalog(folder), keeper=keeper, environ=environ) as engines,
        trio.open_nursery() as services,
    ):
        await services.start(db.serve)
        shop = Workshop(
            db=db,
            engines=engines,
            worktrees=Worktrees(),
            transports={transport.name: transport},
            config=lambda: settings["now"],
            start_cwd=cwd,
            spool=Spool(folder / "spool", db),
        )
        async with open_parts(shop, None, environ=environ) as parts, trio.open_nursery() as runs:
            asks = Asks(shop)
            schedule = Schedule(runs, shop, asks)
            requests = Requests(shop, schedule)
            turns = Turns(runs, shop, parts.admins, oneshot=Asker(Demo()), environ=environ)
            desk = Desk(
                shop=shop,
                schedule=schedule,
                requests=requests,
                asks=asks,
                drafts=Drafts(runs, draft_ports(shop, schedule, requests, parts=parts)),
                interviews=Interviews(
                    runs,
                    db,
                    files=Files(folder / "sessions"),
                    oneshot=Asker(Demo()),
                    host=InterviewHost(shop, requests, turns),
                ),
                turns=turns,
                ear=parts.ear,
                intake=Intake(shop, requests, parts.ear, fetch),
                started_at=trio.current_time(),
                last_poll_s=lambda: {"telegram": 3.0},
                reread=reread,
            )
            try:
                yield Rig(desk, transport, db, register(desk), settings, incoming)
            finally:
                runs.cancel_scope.cancel()
        services.cancel_scope.cancel()
