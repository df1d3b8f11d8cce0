from __future__ import annotations

from tests.botapi.chats import Message
from tests.e2e.rig import Rig

HOUR_S = 3600.0


async def wait_an_hour(rig: Rig, text: str) -> tuple[Message, Message]:
    """A prompt that waited an hour for takopi, and what is asked about it."""
    await rig.start()
    await rig.stop()
    # The clocks of the chat and of takopi are the same: it was sent an hour ago.
    rig.api.pass_time(-HOUR_S)
    prompt = await rig.say(text)
    rig.api.pass_time(HOUR_S)
    await rig.start()
    return prompt, await rig.reply(prompt)


async def test_message_that_waited_too_long_is_asked_about_instead_of_run(rig: Rig) -> None:
    _, question = await wait_an_hour(rig, "say: old news")

    assert question.text == (
        "You wrote this 1h ago, and takopi has only just seen it. Shall it run now?"
    )
    assert question.labels == ("Run", "Drop")
    assert rig.rows("SELECT id FROM runs") == []


async def test_run_starts_it_once_however_often_it_is_pressed(rig: Rig) -> None:
    prompt, question = await wait_an_hour(rig, "say: old news")
    data = question.button("Run")["callback_data"]

    presses = [await rig.ada.press_data(question, data) for _ in range(2)]
    for press in presses:
        await press.answered()

    assert "old news" in (await rig.ending(prompt)).text
    await rig.until_settled(3)
    assert len(rig.rows("SELECT id FROM runs")) == 1
    await rig.until(lambda _: not question.labels)


async def test_drop_leaves_it_and_a_late_run_does_nothing(rig: Rig) -> None:
    _, question = await wait_an_hour(rig, "say: old news")
    run = question.button("Run")["callback_data"]

    await rig.press(question, "Drop")
    await (await rig.ada.press_data(question, run)).answered()

    await rig.until(lambda _: not question.labels)
    await rig.until_settled(3)
    assert rig.rows("SELECT id FROM runs") == []


async def test_stale_s_says_how_old_is_too_old(rig: Rig) -> None:
    rig.configure("[limits]\nstale_s = 7200")
    await rig.start()
    await rig.stop()
    rig.api.pass_time(-HOUR_S)
    prompt = await rig.say("say: not that old")
    rig.api.pass_time(HOUR_S)

    await rig.start()

    assert "not that old" in (await rig.ending(prompt)).text
