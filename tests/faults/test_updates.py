"""F3 and F4: what was sent while nobody listened, and what is handed over twice."""

from __future__ import annotations

from tests.botapi.chats import Message
from tests.conftest import Figures
from tests.faults.rig import FaultRig, endings

CHATS = 5
FRESH, STALE = 8, 2
"""Messages of each chat."""

HOUR_S = 3600


async def test_f3_what_was_sent_while_down_is_handled_and_what_is_stale_is_asked_about(
    rig: FaultRig, figures: Figures
) -> None:
    chats = rig.open_chats(CHATS)
    fresh: dict[str, Message] = {}
    stale: dict[str, Message] = {}
    rig.api.pass_time(-HOUR_S)
    for chat in chats:
        for number in range(STALE):
            name = f"old{number}c{chat.id}"
            stale[name] = await rig.api.person(chat.id).send(chat, f"append starts.txt: {name}")
    rig.api.pass_time(HOUR_S)
    for chat in chats:
        for number in range(FRESH):
            name = f"new{number}c{chat.id}"
            fresh[name] = await rig.api.person(chat.id).send(chat, f"append starts.txt: {name}")
    await rig.start()
    await rig.until_over()

    assert rig.starts == dict.fromkeys(fresh, 1)
    for prompt in fresh.values():
        (answer,) = endings(prompt.chat, prompt)
        assert answer.text.startswith("done · ")
    questions = [*(endings(prompt.chat, prompt) for prompt in stale.values())]
    assert [[m.labels for m in asked] for asked in questions] == [[("Run", "Drop")]] * len(stale)

    for (question,) in questions:
        data = question.button("Run")["callback_data"]
        for _ in range(2):
            await rig.api.person(question.chat.id).press_data(question, data)
    await rig.until_over()
    assert rig.starts == dict.fromkeys([*fresh, *stale], 1)
    figures("F3", sent=len(fresh) + len(stale), handled=50, asked=len(stale), lost=0, twice=0)


async def test_f4_a_batch_that_comes_again_starts_nothing(rig: FaultRig, figures: Figures) -> None:
    await rig.start()
    for name in ("one", "two"):
        await rig.answer(f"append starts.txt: {name}")
    rig.api.repeat_last_batch()
    await rig.answer("append starts.txt: three")

    await rig.kill()
    rig.api.repeat_last_batch()
    await rig.start()
    await rig.answer("append starts.txt: four")
    await rig.until_over()

    assert rig.starts == dict.fromkeys(("one", "two", "three", "four"), 1)
    figures("F4", repeats=2, twice=0)
