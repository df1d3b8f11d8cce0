from __future__ import annotations

from typing import cast

import pytest
import trio

from takopi.core.errors import Rejected
from takopi.core.ids import MessageRef
from takopi.core.messages import Press
from takopi.core.outgoing import Attachment, Button, Card, Mark, MarkKind, Text
from takopi.telegram.menu import MenuItem
from tests.botapi.faults import Closed, Held, Html
from tests.botapi.refusal import too_many_requests
from tests.telegram.rig import (
    ADA,
    RETRY,
    SCOPE,
    Rig,
    card,
    shown,
    texts,
)


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
