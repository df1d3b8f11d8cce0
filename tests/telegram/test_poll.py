from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Edited, IncomingMessage, Press
from takopi.core.outgoing import Button, Card, Text
from takopi.store import inbox
from takopi.store.database import Database
from tests.botapi.api import BotApi
from tests.botapi.faults import Silence
from tests.telegram.rig import (
    ADA,
    BOB,
    GROUP,
    QUICK,
    card,
    config_for,
    next_message,
    open_rig,
    texts,
    watch_log,
)


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
