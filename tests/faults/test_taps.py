"""F22: a button has one effect, whoever taps how often, and none where it does not belong."""

from __future__ import annotations

from tests.botapi.chats import Message
from tests.botapi.presses import Pressed
from tests.conftest import Figures
from tests.faults.rig import WITHIN_S, FaultRig

BOB = 1002
TAPS = 5
NOT_MODIFIED = "message is not modified"
"""After a crash nobody remembers that a late tap's button was taken off already."""


async def tap(rig: FaultRig, message: Message, label: str, times: int = TAPS) -> list[str]:
    """Tap fast, with a finger that is faster than any answer; returns what the bot answered."""
    data = message.button(label)["callback_data"]
    presses: list[Pressed] = [await rig.ada.press_data(message, data) for _ in range(times)]
    return [(await press.answered(within_s=WITHIN_S)).text for press in presses]


async def test_f22_many_taps_on_an_approval_decide_once(rig: FaultRig, figures: Figures) -> None:
    await rig.start()
    prompt = await rig.say("ask approval to append starts.txt: one then ask question")
    asked = await rig.sees(lambda m: "Allow once" in m.labels)
    deny = asked.button("Deny")["callback_data"]
    said = await tap(rig, asked, "Allow once")
    assert said == ["", *["This was decided already."] * (TAPS - 1)]

    late = await rig.ada.press_data(asked, deny)
    assert (await late.answered(within_s=WITHIN_S)).text == "This was decided already."
    question = await rig.sees(lambda m: m.reply_to is prompt and len(m.labels) >= 3)
    await rig.press(question, question.labels[0])
    await rig.ending(prompt)
    assert rig.starts == {"one": 1}
    figures("F22", taps=TAPS + 1, effects=1)


async def test_f22_taps_on_an_old_card_after_a_crash_decide_nothing(rig: FaultRig) -> None:
    rig.api.expect_rejection(NOT_MODIFIED)
    await rig.start()
    prompt = await rig.say("append starts.txt: one then ask approval to append starts.txt: two")
    asked = await rig.sees(lambda m: "Allow once" in m.labels)
    allow = asked.button("Allow once")["callback_data"]
    await rig.kill()
    early = await rig.ada.press_data(asked, allow)
    await rig.start()
    assert (await early.answered(within_s=WITHIN_S)).text
    notice = await rig.ending(prompt, "interrupted")
    late = await rig.ada.press_data(asked, allow)
    assert (await late.answered(within_s=WITHIN_S)).text
    assert rig.starts == {"one": 1}

    said = await tap(rig, notice, "Drop")
    assert said[1:] == ["This was decided already."] * (TAPS - 1)
    retry = "rn:retry:1"
    pressed = await rig.ada.press_data(notice, retry)
    assert (await pressed.answered(within_s=WITHIN_S)).text == "This was decided already."
    await rig.until_over()
    assert len(rig.rows("SELECT id FROM runs")) == 1


async def test_f22_many_taps_on_retry_make_one_run_also_across_a_crash(rig: FaultRig) -> None:
    rig.api.expect_rejection(NOT_MODIFIED)
    await rig.start()
    prompt = await rig.say("append starts.txt: one then hang")
    await rig.until_so(lambda: rig.starts == {"one": 1}, lambda: rig.log[-3000:])
    await rig.kill()
    await rig.start()
    notice = await rig.ending(prompt, "interrupted")
    data = notice.button("Retry")["callback_data"]
    await tap(rig, notice, "Retry")
    await rig.until_so(lambda: rig.starts == {"one": 2}, lambda: rig.log[-3000:])
    await rig.kill()
    await rig.ada.press_data(notice, data)
    await rig.start()
    press = await rig.ada.press_data(notice, data)
    assert (await press.answered(within_s=WITHIN_S)).text == "This was decided already."
    await rig.until_over()
    assert rig.starts == {"one": 2}
    assert len(rig.rows("SELECT id FROM runs")) == 2


async def test_f22_a_tap_from_another_chat_has_no_effect(rig: FaultRig) -> None:
    ada, bob = rig.open_chats(2)
    await rig.start()
    person = rig.api.person(BOB)
    own = await person.send(bob, "append starts.txt: bob")
    answer = await rig.ending(own)
    prompt = await rig.say("ask approval to append starts.txt: one")
    asked = await rig.sees(lambda m: "Allow once" in m.labels)
    hanging = await rig.say("append starts.txt: two then hang")
    card = await rig.progress(hanging)
    await rig.until_so(lambda: rig.starts["two"] == 1, lambda: rig.log[-3000:])

    # Bob may press what he likes in his own chat: these are not his.
    for message, label in ((asked, "Allow once"), (asked, "Deny"), (card, "Cancel")):
        data = message.button(label)["callback_data"]
        pressed = await person.press_data(answer, data)
        await pressed.answered(within_s=WITHIN_S)
    states = rig.rows("SELECT state FROM runs ORDER BY id")
    assert states == [("done",), ("running",), ("running",)]
    assert rig.starts == {"bob": 1, "two": 1}

    await rig.press(asked, "Allow once")
    await rig.ending(prompt)
    assert ada.id != bob.id
    assert rig.starts == {"bob": 1, "two": 1, "one": 1}
