"""The outside of interviews: a chat that shows what the outbox holds, a model, and a host."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, overload

import msgspec
import trio

from takopi.config.loaded import Config
from takopi.core.errors import Unreachable
from takopi.core.ids import EngineId, MessageRef, Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Card, Outgoing
from takopi.interview.plan_file import brief
from takopi.interview.questions import Asked
from takopi.interview.session import Order, Session
from takopi.kit.clock import now_ms
from takopi.store import outbox
from takopi.store.database import Database
from tests.config.names import parsed

T = TypeVar("T")
CHAT = Scope("telegram", 1001)


@dataclass
class PhoneChat:
    """A `Transport` whose chat gets what is in the outbox when somebody looks."""

    db: Database
    name: str = "telegram"
    bot_name: str | None = "bot"
    max_units: int = 4096
    sent: int = 0
    shown: dict[int, Card] = field(default_factory=dict[int, Card])
    pressable: dict[int, Card] = field(default_factory=dict[int, Card])
    """Every card that ever had buttons: a phone may be behind."""

    async def look(self) -> None:
        """Let everything that waits arrive."""
        while (sent := await self.db.write(self._arrive)) is not None:
            if sent.removes is not None:
                self.shown.pop(sent.removes, None)

    def _arrive(self, conn: sqlite3.Connection) -> Outgoing | None:
        send = outbox.take_next(conn, CHAT, now_ms=now_ms())
        if send is None:
            return None
        message = msgspec.msgpack.decode(send.payload, type=Outgoing)
        self.sent += 1
        number = self.sent
        outbox.confirm(conn, send.id, message_id=number, now_ms=now_ms())
        self.shown[number] = message.card
        if message.card.buttons:
            self.pressable[number] = message.card
        return message

    async def send(self, scope: Scope, message: Outgoing) -> MessageRef:
        raise AssertionError("past the store", scope, message)

    def edit(self, ref: MessageRef, card: Card) -> None:
        self.shown[ref.message_id] = card

    def clear_buttons(self, ref: MessageRef) -> None:
        pass

    def delete(self, ref: MessageRef) -> None:
        self.shown.pop(ref.message_id, None)

    def acknowledge(self, press: Press, text: str = "", *, alert: bool = False) -> None:
        pass

    def wake(self, chat: Scope) -> None:
        pass

    async def settle(self, chat: Scope) -> None:
        del chat
        await trio.lowlevel.checkpoint()

    async def create_topic(self, chat: Scope, name: str) -> Scope:
        raise AssertionError("an interview makes no topic", chat, name)


@dataclass
class SlowModel:
    """A `Oneshot` that answers when it is told to."""

    calls: int = 0
    _waiting: set[int] = field(default_factory=set[int])
    _answer: Asked | None = None
    _told: trio.Event = field(default_factory=trio.Event)

    @property
    def in_flight(self) -> int:
        """How many calls wait for their answer."""
        return len(self._waiting)

    def tell(self, answer: Asked | None) -> None:
        """Let what waits be answered so; None: it fails."""
        self._answer = answer
        self._waiting.clear()
        self._told.set()
        self._told = trio.Event()

    @overload
    async def ask(self, system: str, user: str, *, schema: None = None) -> str: ...

    @overload
    async def ask(self, system: str, user: str, *, schema: type[T]) -> T: ...

    async def ask(self, system: str, user: str, *, schema: type[T] | None = None) -> str | T:
        assert schema is not None, (system, user)
        self.calls += 1
        number = self.calls
        self._waiting.add(number)
        try:
            await self._told.wait()
        finally:
            self._waiting.discard(number)
        if self._answer is None:
            raise Unreachable("the model is out", maybe_applied=False)
        return msgspec.convert(self._answer, schema, from_attributes=True)


@dataclass
class OneFolder:
    """A `Host` that works in one folder and notes what it was asked to start."""

    chat: PhoneChat
    cwd: Path
    started: Counter[str] = field(default_factory=Counter[str])
    prompts: list[tuple[Session, str, str]] = field(default_factory=list[tuple[Session, str, str]])
    settings: Config = field(default_factory=lambda: parsed(""))

    def config(self) -> Config:
        return self.settings

    def transport(self, scope: Scope) -> PhoneChat:
        assert scope.chat == CHAT
        return self.chat

    def takes_system(self, engine: EngineId) -> bool:
        return engine == "demo"

    async def find_cwd(self, order: Order) -> Path:
        assert order.cwd is None
        return self.cwd

    async def find_branch(self, order: Order, cwd: Path) -> str:
        assert (order.context, cwd) == (None, self.cwd)
        return "main"

    async def start(self, session: Session, prompt: str, *, said: Outgoing) -> None:
        assert session.plan_path is not None
        text = await trio.Path(self.cwd / session.plan_path).read_text(encoding="utf-8")
        assert text == brief(session, branch="main")
        self.started[session.session_id] += 1
        self.prompts.append((session, prompt, text))
        payload = msgspec.msgpack.encode(said)

        def change(conn: sqlite3.Connection) -> None:
            outbox.add(
                conn, CHAT, kind="notice", payload=payload, now_ms=now_ms(),
                dedupe_key=session.end_key,
            )  # fmt: skip

        await self.chat.db.write(change)
