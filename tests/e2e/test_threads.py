from __future__ import annotations

from itertools import pairwise

import trio

from tests.botapi.chats import Chat, Message
from tests.botapi.faults import Held
from tests.e2e.rig import Rig


def resume_line(message: Message) -> str:
    return message.text.splitlines()[-1]


async def test_reply_goes_on_in_the_thread(rig: Rig) -> None:
    await rig.start()
    first = await rig.answer("remember the number 42")

    second = await rig.answer("what do you remember", to=first)

    assert "the number 42" in second.text
    assert resume_line(second) == resume_line(first)


async def test_reply_to_the_prompt_goes_on_in_its_thread(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("remember the number 42")
    first = await rig.ending(prompt)

    second = await rig.answer("what do you remember", to=prompt)

    assert resume_line(second) == resume_line(first)


async def test_message_without_a_reply_begins_a_new_thread(rig: Rig) -> None:
    await rig.start()
    first = await rig.answer("remember the number 42")

    second = await rig.answer("what do you remember")

    assert "You have not asked me to remember anything." in second.text
    assert resume_line(second) != resume_line(first)


async def test_resume_line_alone_goes_on_with_continue(rig: Rig) -> None:
    await rig.start()
    first = await rig.answer("hello")

    second = await rig.answer(resume_line(first))

    assert "You said: “continue”" in second.text
    assert resume_line(second) == resume_line(first)


async def test_conversation_goes_on_after_a_restart(rig: Rig) -> None:
    await rig.start()
    first = await rig.answer("remember the number 42")
    await rig.stop()
    await rig.start()

    second = await rig.answer("what do you remember", to=first)

    assert "the number 42" in second.text


async def test_reply_to_a_run_without_a_thread_waits_for_it(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("slow start 3s then remember the number 42")
    progress = await rig.progress(prompt)

    reply = await rig.say("what do you remember", to=progress)

    second = await rig.ending(reply)
    assert "the number 42" in second.text
    assert resume_line(second) == resume_line(await rig.ending(prompt))
    (_, ended_ms), (started_ms, _) = rig.rows("SELECT started_ms, ended_ms FROM runs ORDER BY id")
    assert ended_ms <= started_ms


async def test_reply_to_a_message_that_has_just_arrived_waits_until_it_is_known(rig: Rig) -> None:
    await rig.start()
    held = Held()
    rig.api.fail(held, method="sendMessage", applied=True)
    prompt = await rig.say("think 4s then remember the number 42")
    progress = await rig.progress(prompt)

    reply = await rig.say("what do you remember", to=progress)
    await trio.sleep(0.5)
    assert len(rig.rows("SELECT id FROM runs")) == 1
    held.until.set()

    second = await rig.ending(reply)
    assert "the number 42" in second.text
    assert resume_line(second) == resume_line(await rig.ending(prompt))


async def test_reply_to_a_run_that_never_gets_a_thread_begins_a_new_one(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("nothread, think 2s")
    progress = await rig.progress(prompt)

    answer = await rig.answer("what do you remember", to=progress)

    assert "You have not asked me to remember anything." in answer.text


async def test_replies_of_one_thread_run_one_after_the_other_in_their_order(rig: Rig) -> None:
    await rig.start()
    first = await rig.answer("hello")
    prompts = [await rig.say(f"think 500ms then remember number {n}", to=first) for n in range(3)]

    for prompt in prompts:
        await rig.ending(prompt)

    runs = rig.rows("SELECT started_ms, ended_ms FROM runs ORDER BY id")
    assert all(one[1] <= next_[0] for one, next_ in pairwise(runs))
    last = await rig.answer("what do you remember", to=first)
    assert [line for line in last.text.splitlines() if "number" in line] == [
        f"• number {n}" for n in range(3)
    ]


async def test_threads_run_side_by_side(rig: Rig) -> None:
    await rig.start()
    # Neither would ever end, so both are at work only if they are at work at once.
    prompts = [await rig.say("steps 1 then hang") for _ in range(2)]

    for prompt in prompts:
        await rig.progress(prompt, "step 1 of 1")


async def test_reply_with_a_quote_puts_it_above_the_prompt(rig: Rig) -> None:
    await rig.start()
    first = await rig.answer("say: one two three")

    prompt = await rig.say("say: what about it", to=first, quote="two")
    await rig.ending(prompt)

    assert rig.rows("SELECT prompt FROM runs WHERE id = 2") == [("> two\n\nsay: what about it",)]


async def test_thread_that_the_engine_has_forgotten_can_be_started_afresh(rig: Rig) -> None:
    await rig.start()
    first = await rig.answer("remember the number 42")
    for file in (rig.home / "demo").glob("*.json"):
        file.unlink()

    lost = await rig.ending(await rig.say("say: are you there", to=first), "error")
    assert lost.labels == ("Start afresh",)
    await rig.press(lost, "Start afresh")

    answer = await rig.sees(lambda m: m.text.startswith("done") and "are you there" in m.text)
    assert resume_line(answer) != resume_line(first)


async def test_session_mode_chat_goes_on_without_a_reply(rig: Rig) -> None:
    rig.configure('session_mode = "chat"')
    await rig.start()
    first = await rig.answer("remember the number 42")

    second = await rig.answer("what do you remember")

    assert "the number 42" in second.text
    assert resume_line(second) == resume_line(first)


async def test_run_beside_another_in_the_same_folder_says_so(rig: Rig) -> None:
    await rig.start()
    first = await rig.say("steps 1 then hang")
    await rig.progress(first, "step 1 of 1")

    second = await rig.say("hang")

    await rig.progress(second, "run 1 works in the same folder")


async def test_progress_is_one_silent_reply_and_gone_after_the_answer(rig: Rig) -> None:
    await rig.start()

    prompt = await rig.say("steps 3 every 400ms")
    answer = await rig.ending(prompt)
    await rig.until(lambda chat: not any(m.silent for m in bots(chat)))

    assert not answer.silent
    assert [m.id for m in bots(rig.chat)] == [answer.id]
    assert len([m for m in rig.chat.everything if m.by_bot]) == 2


def bots(chat: Chat) -> list[Message]:
    return chat.bot_messages
