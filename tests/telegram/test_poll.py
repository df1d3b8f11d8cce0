from __future__ import annotations

import sqlite3
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from takopi.core.errors import BadToken, Conflict, StoreFailed, Unreachable
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Edited, IncomingMessage, Press
from takopi.core.outgoing import Button, Card, Text
from takopi.routing.authorize import Envelope
from takopi.store import inbox
from takopi.store.database import Database
from takopi.telegram.times import Times
from tests.botapi.api import BotApi
from tests.botapi.bot import open_bot
from tests.botapi.faults import Closed, Cut, Html, Silence
from tests.botapi.refusal import Refused, conflict, too_many_requests
from tests.telegram.rig import (
    ADA,
    BOB,
    GROUP,
    QUICK,
    Rig,
    card,
    config_for,
    open_rig,
    texts,
    watch_log,
)


async def next_message(rig: Rig) -> IncomingMessage:
    what = (await rig.next_arrival()).what
    assert isinstance(what, IncomingMessage)
    return what


async def stored(db: Database) -> list[int]:
    return await db.read(
        lambda conn: [row["update_id"] for row in conn.execute("SELECT update_id FROM inbox")]
    )


async def test_a_message_arrives_and_is_in_the_store_before_it_is_confirmed(
    api: BotApi, tmp_path: Path
) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.send(ada.chat, "hello")
        arrival = await rig.next_arrival()
        row = await rig.db.read(lambda conn: inbox.find(conn, arrival.inbox_id))
        assert row is not None
        assert (row.state, row.source, row.chat_id) == ("new", f"telegram:{api.bot.id}", ADA)
        assert isinstance(arrival.what, IncomingMessage)
        assert (arrival.what.text, arrival.what.update_id) == ("hello", row.update_id)
        await api.wait_for_request(
            lambda request: request.parameters.get("offset") == row.update_id + 1
        )
        assert rig.telegram.bot_name == "takopi_bot"
        assert rig.telegram.last_poll_ms is not None


async def test_only_the_kinds_that_are_read_are_asked_for(api: BotApi, tmp_path: Path) -> None:
    async with open_rig(api, tmp_path, poll=True):
        request = await api.wait_for_request(lambda request: request.method == "getUpdates")

    assert request.parameters["allowed_updates"] == [
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
    ]


async def test_edits_and_presses_arrive_in_their_order(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await rig.telegram.send(
            Scope("telegram", ADA), card("x", buttons=((Button("Go", "rn:go"),),))
        )
        message = await ada.send(ada.chat, "hello")
        await ada.edit(message, "hello there")
        await ada.press(ada.chat.bot_messages[0], "Go")
        first, second, third = [(await rig.next_arrival()).what for _ in range(3)]

    assert isinstance(first, IncomingMessage)
    assert isinstance(second, Edited)
    assert second.message.text == "hello there"
    assert isinstance(third, Press)
    assert third.data == "rn:go"


async def test_s1_strangers_leave_no_trace_and_the_offset_moves_past_them(
    api: BotApi, tmp_path: Path
) -> None:
    ada, bob = api.person(ADA), api.person(BOB, "Bob")
    group = api.supergroup(GROUP)
    theirs = await bob.send(bob.chat, "let me in")
    await bob.edit(theirs, "please")
    await bob.press_data(theirs, "rn:cancel:1")
    await ada.send(group, "in a group that was not named")
    channel = api.channel(-1003000)
    api.post(channel, "news")
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"
        assert len(await stored(rig.db)) == 1
        await api.wait_for_request(
            lambda request: request.method == "getUpdates" and not api.updates.unconfirmed
        )
    assert api.sent("sendMessage") == []


async def test_s1_the_log_names_a_stranger_once(api: BotApi, tmp_path: Path) -> None:
    ada, bob = api.person(ADA), api.person(BOB, "Bob")
    with watch_log() as log:
        async with open_rig(api, tmp_path, poll=True) as rig:
            for _ in range(3):
                await bob.send(bob.chat, "let me in")
            await ada.send(ada.chat, "hello")
            await rig.next_arrival()

    named = [line for line in log.lines if line["event"] == "stranger.ignored"]
    assert [(line["sender"], line["chat"]) for line in named] == [(BOB, BOB)]


async def test_s1_in_a_group_both_the_chat_and_the_person_must_be_named(
    api: BotApi, tmp_path: Path
) -> None:
    ada, bob = api.person(ADA), api.person(BOB, "Bob")
    group = api.supergroup(GROUP)
    config = config_for(api, chat_id=GROUP, people=frozenset({ADA}))
    await bob.send(group, "not me")
    await ada.send(group, "hidden", as_chat=group)
    await ada.send(ada.chat, "elsewhere")
    async with open_rig(api, tmp_path, config=config, poll=True) as rig:
        await ada.send(group, "@takopi_bot me")
        got = await next_message(rig)
        assert (got.text, got.to_bot) == ("@takopi_bot me", True)
        assert len(await stored(rig.db)) == 1


async def test_what_means_nothing_is_passed_over(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    await ada.service(ada.chat, {"new_chat_title": "x"})
    api.update({"message": {"chat": {"id": ADA}, "from": {"id": ADA}, "text": 7}})
    api.update({"message": 5})
    api.update({"mood": {"good": True}})
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"
        assert len(await stored(rig.db)) == 1


async def test_f4_a_batch_that_comes_twice_arrives_once(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.send(ada.chat, "one")
        assert (await next_message(rig)).text == "one"
        api.repeat_last_batch()
        await ada.send(ada.chat, "two")
        assert (await next_message(rig)).text == "two"


async def test_what_nobody_took_comes_again_after_a_restart_and_first(
    api: BotApi, tmp_path: Path
) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        for text in ("taken", "left"):
            await ada.send(ada.chat, text)
        arrival = await rig.next_arrival()
        await rig.db.write(lambda conn: inbox.take(conn, arrival.inbox_id))
        await rig.until(lambda conn: len(conn.execute("SELECT 1 FROM inbox").fetchall()) == 2)
    await ada.send(ada.chat, "new")
    async with open_rig(api, tmp_path, poll=True) as rig:
        assert [(await next_message(rig)).text for _ in range(2)] == ["left", "new"]


async def test_what_was_let_in_once_and_is_no_longer_is_refused_after_a_restart(
    api: BotApi, tmp_path: Path
) -> None:
    ada, bob = api.person(ADA), api.person(BOB, "Bob")
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.send(ada.chat, "hello")
        await rig.next_arrival()
    async with open_rig(api, tmp_path, config=config_for(api, chat_id=BOB), poll=True) as rig:
        await bob.send(bob.chat, "mine now")
        assert (await next_message(rig)).text == "mine now"
        states = await rig.db.read(
            lambda conn: [row["state"] for row in conn.execute("SELECT state FROM inbox")]
        )
    assert states == ["refused", "new"]


async def test_an_update_in_the_store_can_be_read_again(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.send(ada.chat, "hello")
        arrival = await rig.next_arrival()
        row = await rig.db.read(lambda conn: inbox.find(conn, arrival.inbox_id))
        assert row is not None
        assert rig.telegram.reread(row) == arrival.what


async def test_another_bots_messages_are_left_alone(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path) as rig:
        await rig.db.write(
            lambda conn: inbox.record(
                conn,
                "telegram:5",
                updates=[inbox.Update(1, ADA, b"{}")],
                next_offset=2,
                now_ms=1,
            )
        )
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"
        assert len(await rig.db.read(inbox.pending)) == 2


async def test_f5_a_conflict_is_told_once_and_waited_out(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    fault = api.fail(conflict("terminated by other getUpdates"), method="getUpdates", times=3)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck(3)
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"

        (trouble,) = rig.heard.troubles
        assert isinstance(trouble, Conflict)
        assert "stop the other one" in trouble.way_out


async def test_f5_a_second_poller_does_not_end_the_first(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig, open_bot(api) as other:
        await api.wait_for_request(lambda request: request.method == "getUpdates")
        await other.client.post("getUpdates", json={"timeout": 0})
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"


async def test_f7_a_silent_server_is_left_for_a_new_connection(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    fault = api.fail(Silence(), method="getUpdates")
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck()
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"

    first, second = api.sent("getUpdates")[:2]
    assert first.connection != second.connection
    assert second.at_s - first.at_s < 4


async def test_f7_silence_is_not_told_as_receiving(api: BotApi, tmp_path: Path) -> None:
    fault = api.fail(Silence(), method="getUpdates", times=2)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck(2)
        await rig.heard.wait_polls(3)

    known, *failures = rig.heard.failures[:3]
    assert known is None
    for failure in failures:
        assert isinstance(failure, Unreachable)
        assert failure.what == "no answer in time"


async def test_a_silent_server_at_the_start_is_waited_for(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    api.fail(Silence(), method="getMe")
    await ada.send(ada.chat, "hello")
    async with open_rig(api, tmp_path, poll=True) as rig:
        assert (await next_message(rig)).text == "hello"


@pytest.mark.parametrize(
    "trouble", [Html(), Html(404), Html(200), Cut(), Closed(), Refused(500, "oops")], ids=repr
)
async def test_f8_the_poller_outlives_gateways_and_broken_replies(
    api: BotApi, tmp_path: Path, trouble: Html | Cut | Closed | Refused
) -> None:
    ada = api.person(ADA)
    api.fail(trouble, method="getMe")
    fault = api.fail(trouble, method="getUpdates")
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck()
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"
        assert rig.heard.polls >= 3


async def test_f8_the_poller_outlives_a_server_that_is_down(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await api.wait_for_request(lambda request: request.method == "getUpdates")
        await api.go_down()
        await ada.send(ada.chat, "hello")
        await rig.heard.wait_polls(rig.heard.polls + 2)
        api.come_up()
        assert (await next_message(rig)).text == "hello"


async def test_429_is_waited_out_as_told(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    fault = api.fail(too_many_requests(1), method="getUpdates")
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck()
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"

    first, second = api.sent("getUpdates")[:2]
    assert second.at_s - first.at_s >= 0.99


@pytest.mark.parametrize("method", ["getMe", "getUpdates"])
@pytest.mark.parametrize("status", [401, 404])
async def test_a_token_that_telegram_does_not_know_ends_the_poller(
    api: BotApi, tmp_path: Path, method: str, status: int
) -> None:
    api.fail(Refused(status, "Unauthorized"), method=method)
    async with open_rig(api, tmp_path) as rig:
        with pytest.raises(BadToken) as caught:
            await rig.telegram.poll()

    assert caught.value.exit_code == 78
    assert api.token not in repr(caught.value) + caught.value.what


async def test_f15_a_full_disk_confirms_nothing_and_is_told_once(
    api: BotApi, tmp_path: Path
) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await api.wait_for_request(lambda request: request.method == "getUpdates")
        pages = await rig.db.write(fill_disk)
        await ada.send(ada.chat, "x" * 4000)
        tried = len(api.sent("getUpdates")) + 3
        await api.wait_for_request(lambda _request: len(api.sent("getUpdates")) == tried)
        assert len(api.updates.unconfirmed) == 1
        assert isinstance(rig.heard.troubles[0], StoreFailed)
        await rig.db.write(lambda conn: free_disk(conn, pages))
        assert (await next_message(rig)).text == "x" * 4000
        assert len(rig.heard.troubles) == 1


def fill_disk(conn: sqlite3.Connection) -> int:
    """Let SQLite find no room for another page."""
    pages = conn.execute("PRAGMA max_page_count").fetchone()[0]
    conn.execute(f"PRAGMA max_page_count = {conn.execute('PRAGMA page_count').fetchone()[0]}")
    return pages


def free_disk(conn: sqlite3.Connection, pages: int) -> None:
    conn.execute(f"PRAGMA max_page_count = {pages}")


async def test_f15_what_came_with_a_message_that_could_not_be_refused_arrives(
    api: BotApi, tmp_path: Path
) -> None:
    ada, bob = api.person(ADA), api.person(BOB, "Bob")
    await bob.send(bob.chat, "let in, and shut out at once")
    await ada.send(ada.chat, "hello")
    asked: list[Envelope] = []

    def allows(signed: Envelope) -> bool:
        if signed.sender_id == BOB:
            asked.append(signed)
        return signed.sender_id == ADA or len(asked) == 1

    async with open_rig(api, tmp_path, allows=allows) as rig:
        await rig.db.write(make_settling_large)
        rig.services.start_soon(rig.telegram.poll)
        await rig.heard.wait_polls(2)
        assert isinstance(rig.heard.failures[1], StoreFailed)
        await rig.db.write(lambda conn: conn.execute("DROP TRIGGER large"))
        assert (await next_message(rig)).text == "hello"


def make_settling_large(conn: sqlite3.Connection) -> None:
    """Let there be room for what comes in, and none for what becomes of it."""
    conn.execute("CREATE TABLE large (content)")
    conn.execute(
        "CREATE TRIGGER large BEFORE UPDATE ON inbox"
        " BEGIN INSERT INTO large VALUES (zeroblob(1000000)); END"
    )
    pages = conn.execute("PRAGMA page_count").fetchone()[0]
    conn.execute(f"PRAGMA max_page_count = {pages + 20}")


async def test_a_chat_that_is_back_gets_what_was_held_for_it(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.block()
        await rig.say("one")
        await rig.until_states("parked")
        await rig.say("two")
        await ada.unblock()
        await ada.sees(lambda message: message.text == "two")

        assert texts(ada.chat.bot_messages) == ["one", "two"]


async def test_a_message_shows_that_its_chat_is_back(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    ada.chat.bot_status = "kicked"
    async with open_rig(api, tmp_path, poll=True) as rig:
        await rig.say("one")
        await rig.until_states("parked")
        ada.chat.bot_status = "member"
        await ada.send(ada.chat, "here again")
        await ada.sees(lambda message: message.text == "one")


async def test_receiving_does_not_wait_for_senders_that_hang(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    crowd = range(BOB, BOB + 100)
    for number in crowd:
        api.person(number)
    fault = api.fail(Silence(), method="editMessageText", times=None)
    async with open_rig(api, tmp_path, times=replace(QUICK, request_s=50), poll=True) as rig:
        for number in crowd:
            rig.telegram.edit(MessageRef("telegram", number, 1), Card(Text("x")))
        await fault.struck(len(crowd) - 1)
        for text in ("one", "two", "three"):
            await ada.send(ada.chat, text)
            assert (await next_message(rig)).text == text


async def test_a_server_that_does_not_hold_requests_is_not_asked_without_end(
    api: BotApi, tmp_path: Path
) -> None:
    times = Times(poll_s=0, empty_s=0.3)
    async with open_rig(api, tmp_path, times=times, poll=True):
        await api.wait_for_request(lambda _request: len(api.sent("getUpdates")) == 3)

    asked = [request.at_s for request in api.sent("getUpdates")]
    assert all(later - earlier > 0.25 for earlier, later in pairwise(asked))
