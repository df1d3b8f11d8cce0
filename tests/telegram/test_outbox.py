from __future__ import annotations

import contextvars
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import msgspec
import pytest
import trio

from takopi.core.errors import ChatGone, Rejected, TakopiError, Unreachable
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Attachment, Button, Card, Mark, MarkKind, Text
from takopi.routing.authorize import Gate
from takopi.store import outbox
from takopi.store.database import Database, open_database
from takopi.telegram.menu import MenuItem
from takopi.telegram.transport import open_telegram
from tests.botapi.api import BotApi
from tests.botapi.faults import Closed, Cut, Held, Html, Silence
from tests.botapi.refusal import bad_request, forbidden, too_many_requests
from tests.telegram.rig import (
    ADA,
    BOB,
    GROUP,
    QUICK,
    SCOPE,
    Rig,
    card,
    config_for,
    open_rig,
    texts,
    watch_log,
)

RETRY = ((Button("Retry", "rn:retry:1"),),)


def shown(text: str) -> Card:
    return Card(Text(text))


async def test_a_stored_answer_arrives_and_is_known_by_its_number(rig: Rig) -> None:
    ada = rig.api.person(ADA)
    prompt = await ada.send(ada.chat, "hello")
    await rig.say(
        card(
            "done: yes",
            marks=(Mark("bold", 0, 4),),
            buttons=RETRY,
            reply_to=prompt.id,
            silent=True,
        )
    )
    got = await ada.sees(lambda message: message.text == "done: yes")

    assert got.reply_to is prompt
    assert got.silent
    assert got.labels == ("Retry",)
    assert got.entities == ({"type": "bold", "offset": 0, "length": 4},)
    assert got.fields["link_preview_options"] == {"is_disabled": True}
    await rig.until(
        lambda conn: (
            conn.execute("SELECT message_id FROM outbox WHERE state = 'sent'").fetchall() != []
        )
    )
    (row,) = await rig.db.read(lambda conn: conn.execute("SELECT * FROM outbox").fetchall())
    assert row["message_id"] == got.id


async def test_stored_and_direct_messages_keep_their_order(rig: Rig) -> None:
    for number in range(1, 5):
        if number % 2:
            await rig.say(str(number))
        else:
            await rig.telegram.send(SCOPE, card(str(number)))
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).bot_messages) == ["1", "2", "3", "4"]


async def test_a_direct_message_says_which_it_became(rig: Rig) -> None:
    ref = await rig.telegram.send(SCOPE, card("working"))

    (message,) = rig.api.chat(ADA).bot_messages
    assert ref == MessageRef("telegram", ADA, message.id)


async def test_what_an_answer_removes_goes_after_it_arrived(rig: Rig) -> None:
    progress = await rig.telegram.send(SCOPE, card("working"))
    rig.telegram.edit(progress, shown("still working"))
    held = Held()
    rig.api.fail(held, method="sendMessage")
    await rig.say(card("answer", removes=progress.message_id))
    await rig.api.chat(ADA).wait_for(lambda message: message.text == "answer")
    await rig.api.chat(ADA).wait_for(lambda message: "working" in message.text)
    held.until.set()
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).messages) == ["answer"]


async def test_edits_conflate_to_the_last_one(rig: Rig) -> None:
    ref = await rig.telegram.send(SCOPE, card("0"))
    held = Held()
    rig.api.fail(held, method="editMessageText")
    rig.telegram.edit(ref, shown("1"))
    await rig.api.wait_for_request(lambda request: request.method == "editMessageText")
    for number in range(2, 50):
        rig.telegram.edit(ref, shown(str(number)))
    held.until.set()
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    assert [version.text for version in message.versions] == ["0", "1", "49"]


async def test_an_edit_that_changes_nothing_is_not_sent(rig: Rig) -> None:
    ref = await rig.telegram.send(SCOPE, card("same", buttons=RETRY))
    rig.telegram.edit(ref, Card(Text("same"), RETRY))
    await rig.telegram.outbox.flush()
    rig.telegram.edit(ref, shown("same"))
    rig.telegram.edit(ref, shown("same"))
    await rig.telegram.outbox.flush()
    rig.telegram.edit(ref, shown("same"))
    await rig.telegram.outbox.flush()

    (edit,) = rig.api.sent("editMessageText")
    assert edit.status == 200
    assert rig.api.chat(ADA).bot_messages[0].labels == ()


async def test_a_message_loses_its_buttons_and_keeps_its_words(rig: Rig) -> None:
    ref = await rig.telegram.send(SCOPE, card("pick", marks=(Mark("bold", 0, 4),), buttons=RETRY))
    bare = await rig.telegram.send(SCOPE, card("no buttons"))
    for _ in range(2):
        rig.telegram.clear_buttons(ref)
        rig.telegram.clear_buttons(bare)
        await rig.telegram.outbox.flush()

    message, _other = rig.api.chat(ADA).bot_messages
    assert (message.text, message.labels) == ("pick", ())
    assert message.entities == ({"type": "bold", "offset": 0, "length": 4},)
    assert len(rig.api.sent("editMessageReplyMarkup")) == 1


async def test_f10_buttons_of_a_message_that_is_gone_are_nobodys_loss(rig: Rig) -> None:
    rig.api.expect_rejection("not found")
    rig.telegram.clear_buttons(MessageRef("telegram", ADA, 99))
    await rig.telegram.outbox.flush()

    assert len(rig.api.requests) == 1
    assert rig.heard.lost == []


async def test_a_removed_message_is_gone_and_its_edits_with_it(rig: Rig) -> None:
    ref = await rig.telegram.send(SCOPE, card("0"))
    rig.telegram.edit(ref, shown("1"))
    rig.telegram.delete(ref)
    rig.telegram.edit(ref, shown("2"))
    await rig.telegram.outbox.flush()

    assert rig.api.chat(ADA).messages == []
    assert rig.api.sent("editMessageText") == []


async def test_a_press_is_answered_while_its_chat_must_wait(rig: Rig) -> None:
    ada = rig.api.person(ADA)
    await rig.telegram.send(SCOPE, card("x", buttons=RETRY))
    (message,) = ada.chat.bot_messages
    rig.api.fail(too_many_requests(40), method="sendMessage", chat=ADA)
    await rig.say("held back")
    await rig.api.wait_for_request(lambda request: request.error is not None)
    pressed = await ada.press(message, "Retry")
    press = Press(pressed.id, SCOPE, message_id=message.id, sender_id=ADA, data=pressed.data)
    rig.telegram.acknowledge(press, "On it", alert=True)
    answer = await pressed.answered(within_s=10)

    assert (answer.text, answer.alert) == ("On it", True)


async def test_f10_a_press_that_is_too_old_hurts_nobody(rig: Rig) -> None:
    rig.api.expect_rejection("query is too old")
    rig.telegram.acknowledge(Press("1", SCOPE, message_id=1, sender_id=ADA, data="x"))
    await rig.api.wait_for_request(lambda request: request.status == 400)
    await rig.say("still here")

    await rig.api.person(ADA).sees(lambda message: message.text == "still here")


async def test_a_press_is_answered_again_when_the_answer_was_lost(rig: Rig) -> None:
    ada = rig.api.person(ADA)
    await rig.telegram.send(SCOPE, card("x", buttons=RETRY))
    pressed = await ada.press(ada.chat.bot_messages[0], "Retry")
    rig.api.fail(Closed(), method="answerCallbackQuery")
    press = Press(pressed.id, SCOPE, message_id=1, sender_id=ADA, data=pressed.data)
    rig.telegram.acknowledge(press, "x" * 300)

    assert len((await pressed.answered()).text) == 200


async def test_the_menu_is_sent_when_it_changed_and_only_then(rig: Rig) -> None:
    one = (MenuItem("help", "What I can do"),)
    two = (*one, MenuItem("claude", "Ask claude"))
    rig.api.fail(Html(), method="setMyCommands")
    for count, menu in ((2, one), (2, one), (3, two)):
        rig.telegram.show_menu(menu)
        await rig.api.wait_for_request(
            lambda _request, count=count: len(rig.api.sent("setMyCommands")) >= count
        )
        await trio.testing.wait_all_tasks_blocked()

    last = rig.api.sent("setMyCommands")[-1]
    assert [item["command"] for item in last.parameters["commands"]] == ["help", "claude"]
    assert len(rig.api.sent("setMyCommands")) == 3


async def test_f6_one_chat_told_to_wait_holds_up_no_other(rig: Rig) -> None:
    rig.api.person(BOB, "Bob")
    rig.api.fail(too_many_requests(40), chat=ADA)
    await rig.say("for Ada")
    await rig.api.wait_for_request(lambda request: request.error is not None)
    start = trio.current_time()
    for number in range(5):
        await rig.say(str(number), scope=Scope("telegram", BOB))
    await rig.api.chat(BOB).wait_for(lambda message: message.text == "4")

    assert trio.current_time() - start < 2
    assert rig.api.chat(ADA).bot_messages == []
    assert len(rig.api.sent("sendMessage")) == 6


async def test_429_of_a_stored_message_is_waited_out_as_told(rig: Rig) -> None:
    rig.api.fail(too_many_requests(1), method="sendMessage", times=2)
    await rig.say("stored")
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).bot_messages) == ["stored"]
    assert_apart(rig.api)


async def test_429_of_a_direct_message_is_waited_out_as_told(rig: Rig) -> None:
    rig.api.fail(too_many_requests(1), method="sendMessage", times=2)
    ref = await rig.telegram.send(SCOPE, card("direct"))

    (message,) = rig.api.chat(ADA).bot_messages
    assert ref.message_id == message.id
    assert_apart(rig.api)


async def test_429_of_an_edit_holds_back_the_chats_messages_too(rig: Rig) -> None:
    ref = await rig.telegram.send(SCOPE, card("working"))
    rig.api.requests.clear()
    rig.api.fail(too_many_requests(1), method="editMessageText")
    rig.telegram.edit(ref, shown("step 2"))
    await rig.api.wait_for_request(lambda request: request.error is not None)
    await rig.say("stored")
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).bot_messages) == ["step 2", "stored"]
    assert [request.method for request in rig.api.requests] == [
        "editMessageText",
        "sendMessage",
        "editMessageText",
    ]
    assert_apart(rig.api)


def assert_apart(api: BotApi) -> None:
    """After each request that was told to wait a second, a second went by."""
    for earlier, later in pairwise(api.requests):
        assert earlier.status != 429 or later.at_s - earlier.at_s > 0.9


@pytest.mark.parametrize("trouble", [Html(), Cut(), Closed(), Html(200)], ids=str)
async def test_f8_an_answer_arrives_through_gateways_and_broken_replies(
    rig: Rig, trouble: Html | Cut | Closed
) -> None:
    rig.api.fail(trouble, method="sendMessage", times=2)
    await rig.say("answer")
    got = await rig.api.person(ADA).sees(lambda _message: True)
    await rig.telegram.outbox.flush()

    assert got.text == "(repeated)\nanswer"
    assert await rig.states() == ["sent"]


async def test_f8_a_server_that_was_down_makes_no_duplicate(rig: Rig) -> None:
    await rig.api.go_down()
    await rig.say("answer")
    await rig.until(
        lambda conn: conn.execute("SELECT 1 FROM outbox WHERE attempts > 1").fetchone() is not None
    )
    rig.api.come_up()
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).bot_messages) == ["answer"]


async def test_f7_a_send_into_silence_is_given_up_and_tried_again(rig: Rig) -> None:
    rig.api.fail(Silence(), method="sendMessage")
    await rig.say("answer")
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).bot_messages) == ["(repeated)\nanswer"]
    first, second = rig.api.sent("sendMessage")
    assert first.connection != second.connection


async def test_f9_a_send_whose_reply_was_lost_makes_one_marked_duplicate(rig: Rig) -> None:
    rig.api.fail(Closed(), method="sendMessage", applied=True)
    await rig.say(card("answer: yes", marks=(Mark("code", 8, 3),)))
    await rig.telegram.outbox.flush()

    first, second = rig.api.chat(ADA).bot_messages
    assert (first.text, second.text) == ("answer: yes", "(repeated)\nanswer: yes")
    assert second.entities[0]["offset"] == 19


async def test_f9_a_direct_message_whose_reply_was_lost_is_not_sent_again(rig: Rig) -> None:
    rig.api.fail(Closed(), method="sendMessage", applied=True)
    with pytest.raises(Unreachable) as caught:
        await rig.telegram.send(SCOPE, card("working"))
    await rig.telegram.outbox.flush()

    assert caught.value.maybe_applied
    assert texts(rig.api.chat(ADA).bot_messages) == ["working"]


async def test_f9_an_edit_whose_reply_was_lost_is_no_second_message(rig: Rig) -> None:
    rig.api.expect_rejection("message is not modified")
    ref = await rig.telegram.send(SCOPE, card("working"))
    rig.api.fail(Closed(), method="editMessageText", applied=True)
    rig.telegram.edit(ref, shown("step 2"))
    await rig.telegram.outbox.flush()
    rig.telegram.edit(ref, shown("step 2"))
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).bot_messages) == ["step 2"]
    assert len(rig.api.sent("editMessageText")) == 2


async def test_an_edit_that_never_gets_through_is_given_up(rig: Rig) -> None:
    ref = await rig.telegram.send(SCOPE, card("working"))
    rig.api.fail(Html(), method="editMessageText", times=None)
    rig.telegram.edit(ref, shown("step 2"))
    with trio.fail_after(30):
        await rig.telegram.outbox.flush()

    assert len(rig.api.sent("editMessageText")) == 5


async def test_f10_a_text_whose_marks_are_refused_arrives_without_them(rig: Rig) -> None:
    rig.api.expect_rejection("entit")
    await rig.say(card("answer", marks=(Mark("link", 0, 6, "no address"),), buttons=RETRY))
    rig.api.fail(bad_request("can't parse entities"), method="sendMessage")
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    assert (message.text, message.entities, message.labels) == ("answer", (), ("Retry",))


async def test_f10_a_text_that_is_refused_as_text_arrives_as_a_file(rig: Rig) -> None:
    rig.api.expect_rejection("message is too long")
    long = "ä" * 5000
    await rig.say(card(long, marks=(Mark("bold", 0, 3),), buttons=RETRY))
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    stored = rig.api.world.files[message.fields["document"]["file_id"]]
    assert (stored.name, stored.data) == ("message.md", long.encode())
    assert message.labels == ("Retry",)


async def test_f10_buttons_that_are_refused_do_not_keep_the_answer_back(rig: Rig) -> None:
    rig.api.expect_rejection("BUTTON")
    await rig.say(card("answer", buttons=((Button("Retry", "x" * 65),),)))
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    assert rig.api.world.files[message.fields["document"]["file_id"]].data == b"answer"


async def test_what_no_form_of_is_taken_fails_and_the_chat_goes_on(rig: Rig) -> None:
    refusal = rig.api.fail(bad_request("not today"), times=3)
    await rig.say(card("one", buttons=RETRY))
    await rig.say("next")
    await rig.telegram.outbox.flush()

    assert refusal.hits == 3
    assert await rig.states() == ["failed", "sent"]
    assert texts(rig.api.chat(ADA).bot_messages) == ["next"]


async def test_a_direct_message_that_is_refused_in_every_form_is_told(rig: Rig) -> None:
    rig.api.fail(bad_request("not today"), times=None)
    with pytest.raises(Rejected, match="not today"):
        await rig.telegram.send(SCOPE, card("one"))


async def test_f10_what_is_replied_to_may_be_gone(rig: Rig) -> None:
    ada = rig.api.person(ADA)
    prompt = await ada.send(ada.chat, "hello")
    await ada.delete(prompt)
    await rig.say(card("answer", reply_to=prompt.id))
    await rig.telegram.outbox.flush()

    assert texts(ada.chat.bot_messages) == ["answer"]


async def test_f10_an_edit_of_a_message_that_is_gone_is_reported_as_lost(rig: Rig) -> None:
    rig.api.expect_rejection("not found")
    ada = rig.api.person(ADA)
    ref = await rig.telegram.send(SCOPE, card("working"))
    await ada.delete(ada.chat.bot_messages[0])
    rig.telegram.edit(ref, shown("step 2"))
    await rig.telegram.outbox.flush()
    rig.telegram.delete(ref)
    await rig.telegram.outbox.flush()

    assert rig.heard.lost == [(ref, shown("step 2"))]
    assert len(rig.api.requests) == 3


async def test_f10_an_edit_whose_marks_are_refused_is_made_without_them(rig: Rig) -> None:
    ref = await rig.telegram.send(SCOPE, card("working"))
    rig.api.fail(bad_request("can't parse entities"), method="editMessageText")
    rig.telegram.edit(ref, Card(Text("step 2", (Mark("bold", 0, 4),)), RETRY))
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    assert (message.text, message.entities, message.labels) == ("step 2", (), ("Retry",))


async def test_a_file_goes_with_its_caption_and_loses_its_buttons_when_edited(rig: Rig) -> None:
    rig.api.expect_rejection("there is no text in the message to edit")
    ref = await rig.telegram.send(
        SCOPE,
        card(
            "the plan",
            marks=(Mark("bold", 4, 4),),
            buttons=RETRY,
            attachment=Attachment('my "plan".md', b"# Plan\r\n--x\n"),
        ),
    )
    (message,) = rig.api.chat(ADA).bot_messages
    stored = rig.api.world.files[message.fields["document"]["file_id"]]
    assert (message.text, message.labels, stored.data) == (
        "the plan",
        ("Retry",),
        b"# Plan\r\n--x\n",
    )
    assert message.entities == ({"type": "bold", "offset": 4, "length": 4},)

    rig.telegram.edit(ref, shown("decided"))
    await rig.telegram.outbox.flush()
    assert (message.text, message.labels) == ("the plan", ())


async def test_a_deleted_topic_sends_its_answers_to_the_chat_and_says_so_once(rig: Rig) -> None:
    rig.api.expect_rejection("message thread not found")
    ada = rig.api.person(ADA)
    forum = rig.api.supergroup(GROUP, forum=True)
    topic = await ada.open_topic(forum, "fix")
    scope = Scope("telegram", GROUP, topic.id)
    await rig.say("in the topic", scope=scope)
    await rig.telegram.outbox.flush()
    await ada.delete_topic(forum, topic)
    await rig.say("one", scope=scope)
    await rig.say("two", scope=scope)
    ref = await rig.telegram.send(scope, card("three"))

    assert texts(forum.bot_messages) == ["one", "two", "three"]
    assert ref == MessageRef("telegram", GROUP, forum.bot_messages[-1].id)
    assert rig.heard.topics == [scope]
    assert len([request for request in rig.api.requests if request.error]) == 1


async def test_a_closed_topic_sends_to_the_chat_and_stays_a_topic(rig: Rig) -> None:
    forum = rig.api.supergroup(GROUP, forum=True)
    topic = await rig.api.person(ADA).open_topic(forum, "fix")
    rig.api.fail(bad_request("TOPIC_CLOSED"), method="sendMessage")
    await rig.say("one", scope=Scope("telegram", GROUP, topic.id))
    await rig.telegram.outbox.flush()

    assert [(message.text, message.topic) for message in forum.bot_messages] == [("one", None)]
    assert rig.heard.topics == []


async def test_a_chat_that_is_gone_parks_what_must_arrive_and_tells_who_waits(rig: Rig) -> None:
    ada = rig.api.person(ADA)
    await ada.block()
    await rig.say("one")
    await rig.until_states("parked")
    rig.telegram.edit(MessageRef("telegram", ADA, 5), shown("x"))
    with pytest.raises(ChatGone, match="blocked"):
        await rig.telegram.send(SCOPE, card("direct"))
    await rig.say("two")
    await rig.telegram.outbox.flush()

    assert await rig.states() == ["parked", "parked"]
    assert ada.chat.bot_messages == []


async def test_a_chat_gone_in_the_middle_drops_what_waits_behind(rig: Rig) -> None:
    held = Held()
    rig.api.fail(held, method="sendMessage")
    errors: list[TakopiError] = []

    async def send(text: str) -> None:
        try:
            await rig.telegram.send(SCOPE, card(text))
        except ChatGone as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, "first")
        await rig.api.wait_for_request(lambda request: request.method == "sendMessage")
        nursery.start_soon(send, "second")
        nursery.start_soon(send, "third")
        rig.telegram.edit(MessageRef("telegram", ADA, 5), shown("x"))
        await trio.testing.wait_all_tasks_blocked()
        rig.api.fail(forbidden("bot was kicked"), method="sendMessage")
        held.until.set()

    assert len(errors) == 2
    assert len(rig.api.requests) == 2


async def test_a_group_that_moved_is_followed_with_all_that_waits(rig: Rig) -> None:
    group = rig.api.group(-500)
    new = rig.api.migrate(group, GROUP)
    stranger = new.add(rig.api.bot, {"text": "not what was meant"})
    await rig.say(
        card("one", reply_to=stranger.id, removes=stranger.id), scope=Scope("telegram", -500)
    )
    await rig.say("two", scope=Scope("telegram", -500))
    ref = await rig.telegram.send(
        Scope("telegram", -500), card("three", reply_to=stranger.id, removes=stranger.id)
    )
    await rig.telegram.outbox.flush()

    assert texts(new.bot_messages) == ["not what was meant", "one", "two", "three"]
    assert [message.reply_to for message in new.bot_messages] == [None] * 4
    assert ref == MessageRef("telegram", GROUP, new.bot_messages[-1].id)
    assert rig.heard.moves == [(Scope("telegram", -500), Scope("telegram", GROUP))]


async def test_a_message_that_has_not_begun_can_be_cancelled(rig: Rig) -> None:
    rig.api.fail(too_many_requests(40), method="sendMessage")
    with trio.move_on_after(1):
        await rig.telegram.send(SCOPE, card("direct"))
    await rig.telegram.outbox.flush()

    assert rig.api.chat(ADA).bot_messages == []


async def test_a_message_that_has_begun_is_not_lost_to_a_cancel(rig: Rig) -> None:
    held = Held()
    rig.api.fail(held, method="sendMessage")
    refs: list[MessageRef] = []

    async def send(scope: trio.CancelScope) -> None:
        with scope:
            refs.append(await rig.telegram.send(SCOPE, card("working")))

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, scope)
        await rig.api.wait_for_request(lambda request: request.method == "sendMessage")
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        held.until.set()

    assert [ref.message_id for ref in refs] == [rig.api.chat(ADA).bot_messages[0].id]


@pytest.mark.parametrize("payload", [b"{}", b"", b"\x80", b"\x81\xa4card\xa1\xff"])
async def test_what_cannot_be_read_fails_and_the_chat_goes_on(rig: Rig, payload: bytes) -> None:
    await rig.store(payload)
    await rig.say("next")
    await rig.telegram.outbox.flush()

    assert await rig.states() == ["failed", "sent"]


async def test_a_mistake_of_takopi_fails_one_message_and_the_chat_goes_on(rig: Rig) -> None:
    glow = cast("MarkKind", "glow")
    await rig.telegram.send(SCOPE, card("before"))
    with pytest.raises(Rejected, match="takopi made a mistake"):
        await rig.telegram.send(SCOPE, card("direct", marks=(Mark(glow, 0, 1),)))
    await rig.say("next")
    await rig.telegram.outbox.flush()

    assert texts(rig.api.chat(ADA).bot_messages) == ["before", "next"]


async def test_a_stored_file_arrives_byte_for_byte(rig: Rig) -> None:
    await rig.say(card("the file", attachment=Attachment("x.bin", bytes(range(256)))))
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    stored = rig.api.world.files[message.fields["document"]["file_id"]]
    assert (message.text, stored.data) == ("the file", bytes(range(256)))


async def test_a_name_that_is_not_utf_8_can_be_shown(rig: Rig) -> None:
    odd = "caf\udce9 \U0001f600"
    ref = await rig.telegram.send(
        SCOPE, card(odd, marks=(Mark("code", 5, 2),), buttons=((Button(odd, "x"),),))
    )
    (message,) = rig.api.chat(ADA).bot_messages
    assert (message.text, message.labels) == ("caf\ufffd 😀", ("caf\ufffd 😀",))
    assert message.entities == ({"type": "code", "offset": 5, "length": 2},)

    rig.telegram.edit(ref, shown(odd + "!"))
    await rig.telegram.outbox.flush()
    assert message.text == "caf\ufffd 😀!"
    await rig.telegram.send(SCOPE, card(odd, attachment=Attachment(odd, b"x")))


async def test_pace_stays_within_what_telegram_allows(rig: Rig) -> None:
    pace = rig.api.limit_pace()
    ref = await rig.telegram.send(SCOPE, card("0"))
    for number in range(1, 7):
        await rig.say(f"answer {number}")
        rig.telegram.edit(ref, shown(str(number)))
    await rig.telegram.outbox.flush()

    assert pace.refused == 0
    assert len(rig.api.chat(ADA).bot_messages) == 7


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
    async with open_telegram(config, db, allows=Gate(config).allows) as telegram:
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
