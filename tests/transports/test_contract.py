"""What every transport promises, shown over Telegram and over the page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import trio

from takopi.core.ids import Scope
from takopi.core.outgoing import Button, Card, Outgoing, Text
from takopi.core.ports import Transport
from takopi.store import outbox
from takopi.store.database import Database
from takopi.web.chat import SCOPE as PAGE
from tests.botapi.server import serve_botapi
from tests.telegram import rig as telegram
from tests.web import rig as web

YES = ((Button("Yes", "ak:1:yes"),),)


@dataclass(frozen=True, slots=True)
class Line:
    """A transport, and what a person sees of it: the text of each message with its buttons."""

    transport: Transport
    scope: Scope
    db: Database
    sees: Callable[[], Awaitable[list[tuple[str, int]]]]
    flush: Callable[[], Awaitable[None]]

    async def say(self, text: str, *, wake: bool = True) -> None:
        payload = msgspec.msgpack.encode(Outgoing(Card(Text(text))))
        await self.db.write(
            lambda conn: outbox.add(conn, self.scope, kind="answer", payload=payload, now_ms=1)
        )
        if wake:
            self.transport.wake(self.scope)


Open = Callable[[], AbstractAsyncContextManager[Line]]


@pytest.fixture(params=["telegram", "web"])
async def start(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Open, None]:
    """Starts the transport; again, it is the same one after a restart."""
    if request.param == "web":

        @asynccontextmanager
        async def open_page() -> AsyncGenerator[Line, None]:
            async with web.open_rig(tmp_path) as rig:

                async def sees() -> list[tuple[str, int]]:
                    return [(m["text"]["text"], len(m["buttons"])) for m in await rig.history()]

                yield Line(rig.web, PAGE, rig.db, sees, rig.web.outbox.flush)

        yield open_page
        return
    async with serve_botapi() as api:
        api.person(telegram.ADA)

        @asynccontextmanager
        async def open_bot() -> AsyncGenerator[Line, None]:
            async with telegram.open_rig(api, tmp_path) as rig:

                async def sees() -> list[tuple[str, int]]:
                    await trio.lowlevel.checkpoint()
                    chat = api.person(telegram.ADA).chat
                    return [(m.text, len(m.buttons)) for m in chat.messages]

                yield Line(rig.telegram, telegram.SCOPE, rig.db, sees, rig.telegram.outbox.flush)

        yield open_bot


async def test_messages_arrive_in_order_with_their_buttons(start: Open) -> None:
    async with start() as line:
        await line.transport.send(line.scope, Outgoing(Card(Text("one"))))
        await line.say("two")
        await line.transport.send(line.scope, Outgoing(Card(Text("three"), YES)))
        await line.flush()
        assert await line.sees() == [("one", 0), ("two", 0), ("three", 1)]


async def test_newest_of_many_edits_is_what_is_read(start: Open) -> None:
    async with start() as line:
        ref = await line.transport.send(line.scope, Outgoing(Card(Text("0"), YES)))
        for number in range(1, 30):
            line.transport.edit(ref, Card(Text(str(number)), YES))
        await line.flush()
        assert await line.sees() == [("29", 1)]


async def test_buttons_can_be_taken_off(start: Open) -> None:
    async with start() as line:
        ref = await line.transport.send(line.scope, Outgoing(Card(Text("Shall I?"), YES)))
        line.transport.clear_buttons(ref)
        await line.flush()
        assert await line.sees() == [("Shall I?", 0)]


async def test_deleted_message_is_gone_and_no_edit_brings_it_back(start: Open) -> None:
    async with start() as line:
        ref = await line.transport.send(line.scope, Outgoing(Card(Text("one"))))
        line.transport.edit(ref, Card(Text("two")))
        line.transport.delete(ref)
        line.transport.edit(ref, Card(Text("three")))
        await line.flush()
        assert await line.sees() == []


async def test_message_takes_the_place_of_the_one_it_removes(start: Open) -> None:
    async with start() as line:
        ref = await line.transport.send(line.scope, Outgoing(Card(Text("working"))))
        done = Outgoing(Card(Text("done")), removes=ref.message_id)
        await line.transport.send(line.scope, done)
        await line.flush()
        assert await line.sees() == [("done", 0)]


async def test_what_is_in_the_store_arrives_once_and_after_a_restart(start: Open) -> None:
    async with start() as line:
        await line.say("one")
        await line.flush()
        await line.say("two", wake=False)
    async with start() as line:
        await line.flush()
        line.transport.wake(line.scope)
        await line.flush()
        assert await line.sees() == [("one", 0), ("two", 0)]
