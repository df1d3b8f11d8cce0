from __future__ import annotations

from itertools import pairwise

import pytest
import trio

from takopi.core.errors import Rejected, Unreachable
from takopi.core.ids import Scope
from takopi.core.outgoing import Button, Card, Mark, Text
from tests.botapi.api import BotApi
from tests.botapi.faults import Closed, Cut, Html, Silence
from tests.botapi.refusal import bad_request, too_many_requests
from tests.telegram.rig import (
    ADA,
    BOB,
    RETRY,
    SCOPE,
    Rig,
    card,
    shown,
    texts,
)


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
