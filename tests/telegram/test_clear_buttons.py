from __future__ import annotations

from pathlib import Path

import trio

from takopi.core.ids import MessageRef
from takopi.core.outgoing import Attachment, Button, Card, Outgoing, Text
from tests.botapi.api import BotApi
from tests.telegram.rig import ADA, SCOPE, Rig, card, open_rig

ROWS = ((Button("Go", "rn:retry:1"),),)


async def send(rig: Rig, message: Outgoing) -> MessageRef:
    with trio.fail_after(20):
        return await rig.telegram.send(SCOPE, message)


def methods(rig: Rig) -> list[str]:
    return [request.method for request in rig.api.requests]


async def test_message_keeps_its_words_and_loses_its_buttons(rig: Rig) -> None:
    ref = await send(rig, card("Shall I?", buttons=ROWS))
    rig.telegram.clear_buttons(ref)
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    assert (message.text, message.buttons) == ("Shall I?", ())


async def test_buttons_are_not_cleared_twice(rig: Rig) -> None:
    ref = await send(rig, card("Shall I?", buttons=ROWS))
    for _ in range(2):
        rig.telegram.clear_buttons(ref)
        await rig.telegram.outbox.flush()

    assert methods(rig).count("editMessageReplyMarkup") == 1


async def test_message_of_an_earlier_start_is_cleared_without_knowing_its_words(
    api: BotApi, tmp_path: Path
) -> None:
    async with open_rig(api, tmp_path) as before:
        ref = await send(before, card("Shall I?", buttons=ROWS))
    async with open_rig(api, tmp_path) as rig:
        rig.telegram.clear_buttons(ref)
        await rig.telegram.outbox.flush()

    (message,) = api.chat(ADA).bot_messages
    assert (message.text, message.buttons) == ("Shall I?", ())


async def test_edit_that_waits_goes_out_without_its_buttons(rig: Rig) -> None:
    ref = await send(rig, card("Shall I?", buttons=ROWS))
    rig.telegram.edit(ref, Card(Text("Done."), ROWS))
    rig.telegram.clear_buttons(ref)
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    assert (message.text, message.buttons) == ("Done.", ())
    assert "editMessageReplyMarkup" not in methods(rig)


async def test_file_loses_its_buttons(rig: Rig) -> None:
    file = Outgoing(Card(Text("all of it"), ROWS), attachment=Attachment("a.md", b"x"))
    ref = await send(rig, file)
    rig.telegram.clear_buttons(ref)
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    assert message.buttons == ()


async def test_message_that_is_gone_is_no_trouble(rig: Rig) -> None:
    rig.api.expect_rejection("not found")
    rig.telegram.clear_buttons(MessageRef("telegram", ADA, 77))
    await rig.telegram.outbox.flush()

    assert rig.heard.lost == []
    assert rig.heard.troubles == []
