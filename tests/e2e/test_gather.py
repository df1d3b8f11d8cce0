"""What a chat has split is one message again, and nothing else is held up for it."""

from __future__ import annotations

import signal

import pytest

from tests.botapi.person import Attached
from tests.e2e.rig import ADA, Rig

LINE = "0123456789 abcdefghij klmnopqrst uvwxyz\n"
PHOTO = Attached("a.jpg", b"a", caption="say: one of two")
OTHER = Attached("b.jpg", b"b")
FOREVER = "limits.gather_s = 10"
"""Long enough that a message which waited for it would be missed."""


def paste(lines: int = 250) -> str:
    return "say: " + "".join(f"{number} {LINE}" for number in range(lines)).strip()


def prompts(rig: Rig) -> list[str]:
    return [row[0] for row in rig.rows("SELECT prompt FROM runs ORDER BY id")]


async def test_long_paste_becomes_one_run_with_every_line_in_order(rig: Rig) -> None:
    text = paste()
    await rig.start()
    first, *more = await rig.ada.paste(rig.chat, text)
    assert len(more) >= 2
    await rig.ending(first)
    assert [prompt.split() for prompt in prompts(rig)] == [text.split()]
    assert {row[0] for row in rig.rows("SELECT state FROM inbox")} == {"done"}


async def test_text_cut_in_the_middle_of_a_word_is_whole_again(rig: Rig) -> None:
    await rig.start()
    first = await rig.say("say: " + "x" * 4091)
    await rig.say("x" * 500)
    await rig.ending(first)
    assert prompts(rig) == ["say: " + "x" * 4591]


async def test_paste_waits_no_longer_than_its_last_part(rig: Rig) -> None:
    rig.configure(FOREVER)
    await rig.start()
    first = await rig.say("say: " + "x" * 4000)
    await rig.say("the end of it")
    await rig.ending(first)
    assert prompts(rig) == ["say: " + "x" * 4000 + "\nthe end of it"]


async def test_long_text_that_has_no_continuation_runs_alone(rig: Rig) -> None:
    rig.configure("limits.gather_s = 0.1")
    await rig.start()
    await rig.ending(await rig.say("say: " + "y" * 4000))
    assert prompts(rig) == ["say: " + "y" * 4000]


async def test_text_of_3999_units_does_not_wait(rig: Rig) -> None:
    rig.configure(FOREVER)
    await rig.start()
    short = await rig.say("say: " + "😀" * 1997)
    await rig.until_so(lambda: len(prompts(rig)) == 1)
    behind = await rig.say("say: another")
    await rig.ending(short)
    await rig.ending(behind)
    assert len(prompts(rig)) == 2


async def test_command_behind_a_paste_is_no_part_of_it_and_comes_after_it(rig: Rig) -> None:
    rig.configure(FOREVER)
    await rig.start()
    first = await rig.say("hang " + "z" * 4000)
    cancel = await rig.say("/cancel")
    await rig.ending(first, "cancelled")
    assert prompts(rig) == ["hang " + "z" * 4000]
    assert cancel.text == "/cancel"


async def test_others_in_the_chat_and_its_topics_do_not_wait(rig: Rig) -> None:
    bob = 1002
    group = rig.api.supergroup(-1001, forum=True)
    project = f'[projects.g]\npath = "{rig.project("g")}"\nchat_id = -1001'
    rig.configure(f"{FOREVER}\nallowed_user_ids = [{ADA}, {bob}]\n{project}")
    await rig.start()
    topic = await rig.ada.open_topic(group, "other")
    await rig.ada.send(group, "/demo say: " + "x" * 4000)
    elsewhere = await rig.ada.send(group, "/demo say: elsewhere", topic=topic)
    other = await rig.api.person(bob, "Bob").send(group, "/demo say: from bob")
    await rig.sees(lambda m: m.reply_to is elsewhere and "done" in m.text, chat=group)
    await rig.sees(lambda m: m.reply_to is other and "done" in m.text, chat=group)
    assert not any("xxx" in prompt for prompt in prompts(rig))


async def test_album_is_one_message_with_its_caption(rig: Rig) -> None:
    rig.configure("files.enabled = true")
    await rig.start()
    first, _ = await rig.ada.album(rig.chat, [OTHER, PHOTO])
    await rig.ending(first)
    assert prompts(rig) == [
        "say: one of two\n\nFiles that came with this message:\n- .uploads/b.jpg\n- .uploads/a.jpg"
    ]


async def test_album_with_files_off_runs_its_caption_once_and_says_so_once(rig: Rig) -> None:
    await rig.start()
    first, _ = await rig.ada.album(rig.chat, [PHOTO, OTHER])
    await rig.reply(first, "a.jpg, b.jpg were not taken", "files.enabled = true")
    await rig.ending(first)
    assert prompts(rig) == ["say: one of two"]


async def test_reply_to_any_part_goes_on_with_the_run(rig: Rig) -> None:
    await rig.start()
    first = await rig.say("remember the sea, " + "x" * 4000)
    last = await rig.say("and the shore")
    await rig.ending(first)
    answer = await rig.answer("what do you remember", to=last)
    assert "the sea" in answer.text


async def test_edit_of_a_part_changes_that_part_of_a_queued_prompt(rig: Rig) -> None:
    rig.configure("limits.max_runs = 1")
    await rig.start()
    busy = await rig.say("hang")
    await rig.progress(busy, "working")
    await rig.say("say: " + "x" * 4000)
    last = await rig.say("the end")
    await rig.until_so(lambda: len(prompts(rig)) == 2)
    await rig.ada.edit(last, "another end")
    await rig.until_so(lambda: prompts(rig)[1] == "say: " + "x" * 4000 + "\nanother end")


async def test_kill_while_parts_are_waited_for_loses_none(rig: Rig) -> None:
    rig.configure(FOREVER)
    await rig.start()
    first = await rig.say("say: " + "x" * 4000)
    await rig.until_confirmed()
    await rig.stop(signal.SIGKILL)
    await rig.say("the end")
    await rig.start()
    await rig.ending(first)
    assert prompts(rig) == ["say: " + "x" * 4000 + "\nthe end"]


@pytest.mark.parametrize("answer", ["Run", "Drop"])
async def test_stale_paste_is_asked_about_once_and_runs_whole(rig: Rig, answer: str) -> None:
    first = await rig.say("say: " + "x" * 4000)
    await rig.say("the end")
    rig.configure("limits.stale_s = 0")
    await rig.start()
    asked = await rig.reply(first, "Shall it run now?")
    await rig.press(asked, answer)
    if answer == "Run":
        await rig.ending(first)
        assert prompts(rig) == ["say: " + "x" * 4000 + "\nthe end"]
    else:
        await rig.until(lambda _: "Dropped" in asked.text)
        assert prompts(rig) == []
    assert sum("Shall it run" in m.versions[0].text for m in rig.chat.bot_messages) == 1


async def test_fresh_message_behind_a_stale_paste_runs_by_itself(rig: Rig) -> None:
    rig.api.pass_time(-3600)
    old = await rig.say("say: " + "x" * 4000)
    rig.api.pass_time(3600)
    fresh = await rig.say("say: fresh")
    await rig.start()
    await rig.reply(old, "Shall it run now?")
    await rig.ending(fresh)
    assert prompts(rig) == ["say: fresh"]


async def test_edit_of_another_part_keeps_the_edits_before_it(rig: Rig) -> None:
    rig.configure("limits.max_runs = 1")
    await rig.start()
    busy = await rig.say("hang")
    await rig.progress(busy, "working")
    first = await rig.say("say: " + "x" * 4000)
    last = await rig.say("the end")
    await rig.until_so(lambda: len(prompts(rig)) == 2)
    await rig.ada.edit(first, "say: once " + "x" * 4000)
    await rig.ada.edit(first, "say: twice " + "x" * 4000)
    await rig.until_so(lambda: "twice" in prompts(rig)[1])
    await rig.ada.edit(last, "another end")
    await rig.until_so(lambda: prompts(rig)[1] == "say: twice " + "x" * 4000 + "\nanother end")
