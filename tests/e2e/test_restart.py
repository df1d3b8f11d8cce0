from __future__ import annotations

import signal

from tests.botapi.chats import Message
from tests.e2e.rig import Rig

NOTICE_S = 10.0


async def kill_mid_run(rig: Rig, prompt: str = "remember the number 42 then hang") -> Message:
    """Kill takopi while this prompt runs in a thread, start it again; the notice."""
    asked = await rig.say(prompt)
    await rig.progress(asked, "demo --resume")
    await rig.stop(signal.SIGKILL)
    await rig.start()
    return await rig.ending(asked, "interrupted")


async def test_messages_sent_while_takopi_was_stopped_run_once_each(rig: Rig) -> None:
    await rig.start()
    await rig.stop()
    prompts = [await rig.say(f"say: number {n}") for n in range(3)]

    await rig.start()
    for n, prompt in enumerate(prompts):
        assert f"number {n}" in (await rig.ending(prompt)).text
    await rig.stop()
    await rig.start()
    await rig.answer("say: after another restart")

    assert rig.rows("SELECT prompt FROM runs ORDER BY id") == [
        *((f"say: number {n}",) for n in range(3)),
        ("say: after another restart",),
    ]


async def test_run_alive_at_a_crash_is_told_once_within_ten_seconds(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("steps 2 then hang")
    progress = await rig.progress(prompt, "demo --resume", "step 2 of 2")
    await rig.stop(signal.SIGKILL)

    await rig.start()
    began_s = rig.api.sent("getUpdates")[-1].at_s
    notice = await rig.ending(prompt, "interrupted")

    assert notice.versions[0].at_s - began_s < NOTICE_S
    assert "takopi was stopped while this was running." in notice.text
    assert notice.labels == ("Resume", "Retry", "Drop")
    assert notice.text.splitlines()[-1].startswith("demo --resume ")
    await rig.until(lambda chat: progress not in chat.messages)
    await rig.stop()
    await rig.start()
    await rig.answer("say: still one")
    assert len([m for m in rig.chat.messages if m.text.startswith("interrupted")]) == 1
    assert rig.rows("SELECT state FROM runs WHERE id = 1") == [("interrupted",)]


async def test_resume_goes_on_in_the_same_thread(rig: Rig) -> None:
    await rig.start()
    notice = await kill_mid_run(rig)

    resume_line = notice.text.splitlines()[-1]
    await rig.press(notice, "Resume")

    answer = await rig.sees_text("done · demo", "You said: “continue”")
    assert answer.text.splitlines()[-1] == resume_line
    await rig.until(lambda _: notice.text.endswith("goes on as run 2") and not notice.labels)
    assert rig.rows("SELECT prompt, retry_of FROM runs WHERE id = 2") == [("continue", 1)]


async def test_retry_runs_the_same_prompt_again(rig: Rig) -> None:
    await rig.start()
    notice = await kill_mid_run(rig, "write a.txt: hello then hang")

    await rig.press(notice, "Retry")

    await rig.sees_text("working · demo", "write a.txt")
    assert rig.rows("SELECT prompt, retry_of FROM runs WHERE id = 2") == [
        ("write a.txt: hello then hang", 1)
    ]


async def test_drop_ends_the_matter(rig: Rig) -> None:
    await rig.start()
    notice = await kill_mid_run(rig)

    await rig.press(notice, "Drop")

    await rig.until(lambda _: not notice.labels)
    assert notice.text.startswith("interrupted · demo")
    assert len(rig.rows("SELECT id FROM runs")) == 1


async def test_second_press_has_no_effect_whichever_button_it_is(rig: Rig) -> None:
    await rig.start()
    notice = await kill_mid_run(rig)
    data = {label: notice.button(label)["callback_data"] for label in notice.labels}

    presses = [
        await rig.ada.press_data(notice, data[label])
        for label in ("Resume", "Resume", "Retry", "Drop")
    ]
    for press in presses:
        await press.answered()

    await rig.sees_text("done · demo", "You said: “continue”")
    await rig.until_settled(5)
    assert len(rig.rows("SELECT id FROM runs")) == 2


async def test_press_after_another_restart_has_its_one_effect(rig: Rig) -> None:
    await rig.start()
    notice = await kill_mid_run(rig)
    await rig.stop()
    data = notice.button("Resume")["callback_data"]
    for _ in range(2):
        await rig.ada.press_data(notice, data)

    await rig.start()

    await rig.sees_text("done · demo", "You said: “continue”")
    await rig.until_settled(3)
    assert len(rig.rows("SELECT id FROM runs")) == 2


async def test_queued_runs_are_still_queued_after_a_crash(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    await rig.progress(await rig.say("hang"), "demo --resume")
    prompts = [await rig.say(f"say: number {n}") for n in range(2)]
    for prompt in prompts:
        await rig.progress(prompt, "queued")
    await rig.stop(signal.SIGKILL)

    await rig.start()

    for n, prompt in enumerate(prompts):
        assert f"number {n}" in (await rig.ending(prompt)).text
    assert rig.rows("SELECT state FROM runs ORDER BY id") == [
        ("interrupted",),
        ("done",),
        ("done",),
    ]


async def test_queued_run_keeps_its_one_card_over_a_restart(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    await rig.progress(await rig.say("hang"), "demo --resume")
    prompt = await rig.say("think 1s then say: done with it")
    card = await rig.progress(prompt, "queued")
    known = "SELECT progress_message_id FROM runs WHERE id = 2"
    await rig.until_so(lambda: rig.rows(known) == [(card.id,)])
    await rig.stop(signal.SIGKILL)

    await rig.start()

    await rig.ending(prompt)
    assert any(version.text.startswith("working") for version in card.versions)
    await rig.until(lambda chat: card not in chat.messages)


async def test_answer_that_was_not_sent_arrives_after_the_restart(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("slow start 1s then say: here it is")
    await rig.progress(prompt)
    await rig.api.go_down()
    # The engine ends without Telegram; its answer waits in the store.
    await rig.until_so(lambda: rig.rows("SELECT state FROM runs") == [("done",)])
    await rig.stop(signal.SIGKILL)
    rig.api.come_up()

    await rig.start()

    assert "here it is" in (await rig.reply(prompt, "done · demo")).text
    assert rig.rows("SELECT state FROM runs") == [("done",)]
