from __future__ import annotations

import contextvars
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import trio

from takopi.core.errors import Unreachable
from takopi.core.ids import MessageRef
from takopi.core.outgoing import Card
from takopi.files.spool import Spool
from takopi.routing.authorize import Gate
from takopi.store import outbox
from takopi.store.database import Database, open_database
from takopi.telegram.transport import open_telegram
from tests.botapi.api import BotApi
from tests.botapi.faults import Held, Silence
from tests.botapi.refusal import too_many_requests
from tests.telegram.rig import (
    ADA,
    QUICK,
    SCOPE,
    Rig,
    card,
    config_for,
    open_rig,
    shown,
    texts,
    watch_log,
)


async def test_a_restart_sends_what_waited_in_its_order(api: BotApi, tmp_path: Path) -> None:
    async with open_rig(api, tmp_path) as rig:
        await api.go_down()
        await rig.say("one")
        await rig.say("two")
        await rig.until_states("waiting", "waiting")
    api.come_up()
    async with open_rig(api, tmp_path) as rig:
        await rig.telegram.outbox.flush()

    assert texts(api.chat(ADA).bot_messages) == ["one", "two"]


async def test_a_pause_that_was_told_is_kept_over_a_restart(api: BotApi, tmp_path: Path) -> None:
    async with open_rig(api, tmp_path) as rig:
        api.fail(too_many_requests(2), method="sendMessage")
        await rig.say("one")
        await rig.until(lambda conn: was_put_back(conn) == 1)
    async with open_rig(api, tmp_path) as rig:
        await rig.telegram.outbox.flush()

    refused, sent = api.sent("sendMessage")
    assert sent.at_s - refused.at_s > 1.5


def was_put_back(conn: sqlite3.Connection) -> int:
    return len(
        conn.execute("SELECT 1 FROM outbox WHERE state = 'waiting' AND attempts = 1").fetchall()
    )


async def test_a_store_that_does_not_answer_is_waited_for(rig: Rig) -> None:
    await rig.store(msgspec.msgpack.encode(card("one")))
    with watch_log() as log, closing(sqlite3.connect(rig.db.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        rig.telegram.wake(SCOPE)
        await log.wait_for("store.failed")
        other.rollback()
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).bot_messages) == ["one"]


async def test_a_sender_does_not_inherit_what_the_one_who_speaks_is_doing(rig: Rig) -> None:
    doing = contextvars.ContextVar("doing", default="nothing")
    seen: list[str] = []

    def note(_ref: MessageRef, _card: Card) -> None:
        seen.append(doing.get())

    rig.heard.on_lost = note
    rig.api.expect_rejection("not found")
    doing.set("a run")
    rig.telegram.edit(MessageRef("telegram", ADA, 99), shown("x"))
    await rig.telegram.outbox.flush()

    assert seen == ["nothing"]


async def test_a_stop_lets_what_is_on_its_way_arrive_and_be_known(
    api: BotApi, tmp_path: Path
) -> None:
    held = Held()
    api.fail(held, method="sendMessage")

    async with open_rig(api, tmp_path) as rig:
        await rig.say("one")
        await rig.say("two")
        await api.wait_for_request(lambda request: request.method == "sendMessage")
        rig.services.cancel_scope.cancel()
        held.until.set()
    async with open_rig(api, tmp_path) as rig:
        await rig.telegram.outbox.flush()

    assert texts(api.chat(ADA).bot_messages) == ["one", "two"]


async def test_leaving_the_transport_lets_what_is_on_its_way_arrive_and_be_known(
    api: BotApi, tmp_path: Path
) -> None:
    held = Held()
    api.fail(held, method="sendMessage")
    async with open_database(tmp_path / "state.db") as db, trio.open_nursery() as services:
        await services.start(db.serve)
        await speak_and_leave(api, db, services=services, held=held)
        (row,) = await db.read(lambda conn: conn.execute("SELECT * FROM outbox").fetchall())
        services.cancel_scope.cancel()

    assert row["state"] == "sent"


async def speak_and_leave(api: BotApi, db: Database, *, services: trio.Nursery, held: Held) -> None:
    """Leave the transport while its outbox, whose nursery is another's, is in the middle."""
    config = config_for(api)
    payload = msgspec.msgpack.encode(card("one"))
    spool = Spool(db.path.parent / "spool", db)
    async with open_telegram(config, db, allows=Gate(config).allows, spool=spool) as telegram:
        await services.start(telegram.outbox.serve)
        await db.write(
            lambda conn: outbox.add(conn, SCOPE, kind="answer", payload=payload, now_ms=1)
        )
        telegram.wake(SCOPE)
        await api.wait_for_request(lambda request: request.method == "sendMessage")
        services.start_soon(release_late, held)


async def release_late(held: Held) -> None:
    await trio.sleep(0.3)
    held.until.set()


async def test_a_stop_does_not_wait_for_a_server_that_is_silent(
    api: BotApi, tmp_path: Path
) -> None:
    api.fail(Silence(), method="sendMessage", applied=True)
    async with open_rig(api, tmp_path, times=replace(QUICK, request_s=50)) as rig:
        await rig.say("one")
        await api.wait_for_request(lambda request: request.method == "sendMessage")
        start = trio.current_time()
    assert trio.current_time() - start < 20
    async with open_rig(api, tmp_path) as rig:
        await rig.telegram.outbox.flush()

    assert texts(api.chat(ADA).bot_messages) == ["one", "(repeated)\none"]


async def test_a_stop_tells_those_who_wait_for_a_message(api: BotApi, tmp_path: Path) -> None:
    api.fail(too_many_requests(40), method="sendMessage", times=None)
    errors: list[Unreachable] = []

    async def send(rig: Rig) -> None:
        try:
            await rig.telegram.send(SCOPE, card("x"))
        except Unreachable as error:
            errors.append(error)

    async with open_rig(api, tmp_path) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(send, rig)
        await api.wait_for_request(lambda request: request.error is not None)
        rig.services.cancel_scope.cancel()

    assert [error.maybe_applied for error in errors] == [False]
    with pytest.raises(Unreachable, match="stopping"):
        await rig.telegram.send(SCOPE, card("x"))
