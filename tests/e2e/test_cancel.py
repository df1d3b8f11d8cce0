from __future__ import annotations

from tests.e2e.rig import Rig


async def test_cancel_is_acknowledged_and_leaves_no_process(rig: Rig) -> None:
    await rig.start()
    idle = set(rig.alive())
    prompt = await rig.say("fork, stubborn, steps 1 then hang")
    progress = await rig.progress(prompt, "step 1 of 1")
    assert len(set(rig.alive()) - idle) >= 4

    answer = await rig.press(progress, "Cancel")

    assert answer.text == "Cancelling…"
    cancelled = await rig.ending(prompt, "cancelled")
    assert cancelled.labels == ("Retry",)
    await rig.until_so(lambda: set(rig.alive()) <= idle)


async def test_cancelled_answer_keeps_what_was_said(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("sample steps then hang")
    progress = await rig.progress(prompt, "rough today")

    await rig.press(progress, "Cancel")

    cancelled = await rig.ending(prompt, "cancelled")
    assert "Let me see what there is" in cancelled.text
    assert cancelled.text.splitlines()[-1].startswith("demo --resume ")


async def test_cancelled_thread_can_be_continued(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("remember the number 42 then hang")
    progress = await rig.progress(prompt, "demo --resume")
    await rig.press(progress, "Cancel")
    cancelled = await rig.ending(prompt, "cancelled")

    answer = await rig.answer("what did I ask first", to=cancelled)

    assert "remember the number 42 then hang" in answer.text


async def test_second_cancel_changes_nothing(rig: Rig) -> None:
    # The card may be gone when the last press arrives, and has no buttons to take off then.
    rig.api.expect_rejection("message to edit not found")
    await rig.start()
    prompt = await rig.say("stubborn, steps 1 then hang")
    progress = await rig.progress(prompt, "step 1 of 1")
    data = progress.button("Cancel")["callback_data"]

    presses = [await rig.ada.press_data(progress, data) for _ in range(3)]
    for press in presses:
        await press.answered()

    await rig.ending(prompt, "cancelled")
    late = await (await rig.ada.press_data(progress, data)).answered()
    assert late.text == "This run has ended already."
    assert len([m for m in rig.chat.messages if m.text.startswith("cancelled")]) == 1


async def test_retry_of_a_cancelled_run_runs_its_prompt_again(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("steps 1 then hang")
    await rig.press(await rig.progress(prompt, "step 1 of 1"), "Cancel")
    cancelled = await rig.ending(prompt, "cancelled")

    await rig.press(cancelled, "Retry")

    await rig.progress(prompt, "working", "step 1 of 1")
    await rig.until(lambda _: not cancelled.labels)


async def test_failed_run_tells_its_error_and_offers_retry(rig: Rig) -> None:
    await rig.start()

    failed = await rig.ending(await rig.say("fail: the sea is too rough"), "error")

    assert "the sea is too rough" in failed.text
    assert failed.labels == ("Retry",)


async def test_crash_of_an_engine_is_told_with_its_last_words(rig: Rig) -> None:
    await rig.start()

    failed = await rig.ending(await rig.say("crash"), "error")

    assert "asked to crash, so it did" in failed.text


async def test_run_longer_than_run_s_is_ended_and_told(rig: Rig) -> None:
    rig.configure("[limits]\nrun_s = 1.5")
    await rig.start()
    idle = set(rig.alive())

    failed = await rig.ending(await rig.say("sample steps then hang"), "error")

    assert "limits.run_s" in failed.text
    assert "Let me see what there is" in failed.text
    await rig.until_so(lambda: set(rig.alive()) <= idle)


async def test_silence_is_told_once_and_ends_nothing(rig: Rig) -> None:
    rig.configure("[limits]\nidle_s = 1")
    await rig.start()
    prompt = await rig.say("think 4s then say: awake")

    notice = await rig.reply(prompt, "has said nothing for")

    assert notice.labels == ("Cancel",)
    assert "awake" in (await rig.ending(prompt)).text
    told = [m for m in rig.chat.messages if "has said nothing for" in m.text]
    assert told == [notice]


async def test_cancel_of_the_notice_ends_the_silent_run(rig: Rig) -> None:
    rig.configure("[limits]\nidle_s = 1")
    await rig.start()
    prompt = await rig.say("hang")

    await rig.press(await rig.reply(prompt, "has said nothing for"), "Cancel")

    await rig.ending(prompt, "cancelled")
