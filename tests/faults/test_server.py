"""F5 to F10: a server that refuses, is silent, breaks off, or says no; takopi goes on by itself."""

from __future__ import annotations

import statistics

import pytest
import trio

from tests.botapi.chats import Message
from tests.botapi.faults import Closed, Cut, Html, Silence, Trouble
from tests.botapi.refusal import Refused, bad_request, conflict, too_many_requests
from tests.conftest import Figures
from tests.faults.promises import LONG
from tests.faults.rig import WITHIN_S, FaultRig, endings

HASTE = () if LONG else ("--quick",)
MINUTE_S = 60
DEAD_S = 75
"""Within this a dead connection has been left."""

REPEATED = "(repeated)\n"


async def test_f5_a_conflict_is_told_once_and_waited_out(rig: FaultRig, figures: Figures) -> None:
    await rig.start(*HASTE)
    other = conflict("terminated by other getUpdates request")
    if LONG:
        rig.api.fail(other, method="getUpdates", times=None, for_s=MINUTE_S)
        await trio.sleep(MINUTE_S)
    else:
        await rig.api.fail(other, method="getUpdates", times=3).struck(3, within_s=WITHIN_S)
    ended = trio.current_time()
    await rig.answer("append starts.txt: one")

    told = [m for m in rig.chat.messages if m.by_bot and "another program receives" in m.text]
    assert len(told) == 1
    figures("F5", notices=1, recovered_s=round(trio.current_time() - ended, 1))


async def test_f6_one_chat_that_must_wait_holds_up_no_other(
    rig: FaultRig, figures: Figures
) -> None:
    ada, bob = rig.open_chats(2)
    await rig.start()
    prompt = await rig.say("hang")
    working = await rig.progress(prompt)
    # In the short form for longer than the test lasts, so that nothing can have waited for it.
    pause_s = 40 if LONG else 3600
    held = rig.api.fail(too_many_requests(pause_s), chat=ada, method="sendMessage")
    await rig.say("append starts.txt: held")
    await held.struck(within_s=WITHIN_S)
    began = trio.current_time()

    press = await rig.ada.press(working, "Cancel")
    await press.answered(within_s=WITHIN_S)
    press_s = trio.current_time() - began
    waits_s: list[float] = []
    for number in range(12 if LONG else 3):
        sent = trio.current_time()
        prompt = await rig.api.person(bob.id).send(bob, f"append starts.txt: free{number}")
        await rig.ending(prompt)
        waits_s.append(trio.current_time() - sent)
        if LONG:
            # Or it is the chat's own pace that is measured.
            await trio.sleep(2.5)
    assert not [m for m in ada.messages if m.by_bot and "held" in m.text]

    if LONG:
        worst_s = max(waits_s)
        assert max(worst_s, press_s) < 2
        await rig.until_over()
        assert trio.current_time() - began >= pause_s
        figures(
            "F6",
            p50_s=round(statistics.median(waits_s), 2),
            p99_s=round(worst_s, 2),
            press_s=round(press_s, 2),
        )


async def test_f7_a_server_that_never_answers_is_left_for_a_new_connection(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start(*HASTE)
    silence = rig.api.fail(Silence(), method="getUpdates")
    await silence.struck(within_s=WITHIN_S)
    began = trio.current_time()
    prompt = await rig.say("append starts.txt: one")
    # Longer than any other wait: the poll alone is given up after a minute.
    await rig.until_so(lambda: bool(endings(rig.chat, prompt)), lambda: rig.log[-3000:])
    took_s = trio.current_time() - began

    (silent,) = [request for request in rig.api.requests if request.fault is silence]
    after = next(r for r in rig.api.sent("getUpdates") if r.at_s > silent.at_s)
    assert after.connection != silent.connection
    if LONG:
        assert took_s < DEAD_S
    figures("F7", recovered_s=round(took_s, 1))


BROKEN: tuple[Trouble, ...] = (
    Html(502),
    Html(200),
    Cut(),
    Closed(),
    Refused(500, "Internal Server Error"),
)


async def test_f8_broken_answers_end_nothing_and_lose_nothing(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start("--quick")
    prompts: dict[str, Message] = {}
    rounds = 5 if LONG else 1
    for number in range(rounds):
        for index, trouble in enumerate(BROKEN):
            polling = rig.api.fail(trouble, method="getUpdates")
            sending = rig.api.fail(trouble, method="sendMessage")
            name = f"r{number}n{index}"
            prompts[name] = await rig.say(f"append starts.txt: {name}")
            await polling.struck(within_s=WITHIN_S)
            await sending.struck(within_s=WITHIN_S)
            # A server that never gets anything through is a longer outage, not a worse one: the
            # pauses would grow until the messages are stale.
            await rig.until_over()
        rig.api.drop_connections()
        await rig.api.go_down()
        prompts[f"down{number}"] = await rig.say(f"append starts.txt: down{number}")
        rig.api.come_up()
    await rig.until_over()

    assert rig.starts == dict.fromkeys(prompts, 1)
    for prompt in prompts.values():
        tell_at_most_twice(prompt)
    assert rig.process is not None
    assert rig.process.poll() is None
    figures("F8", faults=rounds * (2 * len(BROKEN) + 2), lost=0, exits=0)


def tell_at_most_twice(prompt: Message) -> None:
    """One answer; after a lost reply a second one that says so."""
    first, *again = [m.text for m in endings(prompt.chat, prompt)]
    assert first.startswith(("done · ", REPEATED))
    assert len(again) <= 1
    assert all(text.startswith(REPEATED) for text in again)


async def test_f9_a_progress_message_whose_reply_was_lost_is_not_sent_again(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start()
    lost = rig.api.fail(Closed(), method="sendMessage", applied=True)
    prompt = await rig.say("append starts.txt: one then steps 2 every 100ms")
    await rig.ending(prompt)
    await rig.until_over()

    assert lost.hits == 1
    silent = [m for m in rig.chat.everything if m.by_bot and m.silent]
    assert len(silent) == 1
    assert len(endings(rig.chat, prompt)) == 1
    figures("F9", progress_messages=1, answers=1)


async def test_f9_an_edit_whose_reply_was_lost_makes_no_second_message(rig: FaultRig) -> None:
    await rig.start()
    lost = rig.api.fail(Closed(), method="editMessageText", times=2, applied=True)
    prompt = await rig.say("steps 3 every 400ms")
    await lost.struck(within_s=WITHIN_S)
    await rig.ending(prompt)
    await rig.until_over()

    assert len([m for m in rig.chat.everything if m.by_bot]) == 2


async def test_f9_an_answer_whose_reply_was_lost_comes_once_more_and_says_so(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start()
    prompt = await rig.say("append starts.txt: one then ask approval to append starts.txt: two")
    asked = await rig.reply(prompt, "demo")
    asked = await rig.sees(lambda m: "Allow once" in m.labels)
    rig.api.fail(Closed(), method="sendMessage", applied=True)
    await rig.press(asked, "Allow once")
    await rig.until_over()

    _question, first, again = endings(rig.chat, prompt)
    assert first.text.startswith("done · ")
    assert again.text == REPEATED + first.text
    figures("F9", marked_duplicates=1)


NOT_MODIFIED = bad_request("message is not modified: the content is the same")
NOT_FOUND = bad_request("message to edit not found")
NO_ENTITIES = bad_request("can't parse entities: unsupported start tag")
TOO_LONG = bad_request("message is too long")
TOO_OLD = bad_request("query is too old and response timeout expired or query ID is invalid")


@pytest.mark.parametrize("refused", [NOT_MODIFIED, NOT_FOUND], ids=["not modified", "not found"])
async def test_f10_the_answer_arrives_though_edits_are_refused(
    rig: FaultRig, refused: Refused
) -> None:
    await rig.start()
    edits = rig.api.fail(refused, method="editMessageText", times=None)
    prompt = await rig.say("steps 3 every 400ms")
    await edits.struck(within_s=WITHIN_S)
    await rig.ending(prompt)


async def test_f10_the_answer_arrives_though_its_form_is_refused(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start()
    for refused, times in ((NO_ENTITIES, 1), (TOO_LONG, 2)):
        prompt = await rig.say("ask approval to append starts.txt: one then markdown")
        asked = await rig.sees(lambda m, to=prompt: m.reply_to is to and "Allow once" in m.labels)
        rig.api.fail(refused, method="sendMessage", times=times)
        await rig.press(asked, "Allow once")
        await rig.until_over()
        _question, answer = endings(rig.chat, prompt)
        is_file = "document" in answer.fields
        assert is_file if refused is TOO_LONG else not is_file
    figures("F10", refusals=5, arrived="all")


async def test_f10_a_press_that_is_too_old_to_be_answered_still_counts(rig: FaultRig) -> None:
    await rig.start()
    prompt = await rig.say("hang")
    working = await rig.progress(prompt)
    rig.api.fail(TOO_OLD, method="answerCallbackQuery")
    await rig.ada.press(working, "Cancel")
    await rig.ending(prompt, "cancelled")
