from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.botapi.chats import Chat, Message, Topic
from tests.drafts.claude_stand_in import StandIn
from tests.drafts.tmux_server import Server
from tests.e2e.rig import ADA, Rig
from tests.e2e.test_groups import BOB, GROUP


@pytest.fixture
def master(rig: Rig) -> StandIn:
    """A prompt-master that adds each input as a line."""
    stand_in = StandIn(rig.folder / "master")
    rig.configure(f'claude.command = "{stand_in.path}"')
    return stand_in


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.end()


async def draft(rig: Rig, *inputs: str) -> Message:
    """Switch drafting on, and say so many things; the card, once they are in."""
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    for said in inputs:
        await rig.say(said)
    return await card_with(rig, text(*inputs))


def text(*inputs: str) -> str:
    return "\n".join(f"* {said}" for said in inputs)


async def card_with(rig: Rig, shown: str, *, chat: Chat | None = None) -> Message:
    """The card that shows this text and nothing that goes on."""
    return await rig.sees(
        lambda m: m.text.split("\n\n")[0] == shown and "Taking in" not in m.text, chat=chat
    )


def versions(rig: Rig) -> list[str]:
    return [row[0] for row in rig.rows("SELECT text FROM draft_versions ORDER BY number")]


async def test_first_message_is_shown_with_run_and_reset(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    assert card.labels == ("Run", "Reset")
    assert [mark["type"] for mark in card.entities] == ["pre"]
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]


async def test_further_messages_are_edited_in_and_can_be_reverted(
    rig: Rig, master: StandIn
) -> None:
    card = await draft(rig, "one", "two")
    assert card.labels == ("Run", "Revert", "Reset")
    assert [m for m in rig.chat.bot_messages if "* one" in m.text] == [card]


async def test_nothing_yet_has_no_buttons(rig: Rig, master: StandIn) -> None:
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    await rig.say("wait")
    card = await rig.sees_text("Taking in 1 message")
    assert card.labels == ()
    master.go()
    await rig.until(lambda _: card.labels == ("Run", "Reset"))


async def test_master_gets_the_previous_state_and_the_new_input(rig: Rig, master: StandIn) -> None:
    await draft(rig, "one", "two")
    assert [call["stdin"] for call in master.calls] == [
        "Previous state:\n\n\nNew input:\none",
        "Previous state:\n* one\n\nNew input:\ntwo",
    ]


async def test_revert_goes_back_step_by_step_to_the_first(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one", "two", "three")
    await rig.press(card, "Revert")
    await rig.until(lambda _: card.text == text("one", "two"))
    await rig.press(card, "Revert")
    await rig.until(lambda _: card.text == text("one"))
    assert card.labels == ("Run", "Reset")


async def test_double_tap_on_revert_goes_back_once(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one", "two", "three")
    data = card.button("Revert")["callback_data"]
    presses = [await rig.ada.press_data(card, data) for _ in range(2)]
    answers = {(await press.answered()).text for press in presses}
    assert answers & {"This was decided already.", "This draft has moved on."}
    await rig.until(lambda _: card.text == text("one", "two"))
    assert versions(rig) == [text("one"), text("one", "two")]


async def test_reset_deletes_the_card_and_the_next_input_begins_anew(
    rig: Rig, master: StandIn
) -> None:
    card = await draft(rig, "one", "two")
    await rig.press(card, "Reset")
    await rig.until(lambda chat: card not in chat.messages)
    assert versions(rig) == []
    await rig.say("three")
    again = await card_with(rig, text("three"))
    assert again.labels == ("Run", "Reset")


async def test_card_that_cannot_be_deleted_is_emptied(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    rig.api.expect_rejection("message can't be deleted")
    rig.api.pass_time(49 * 3600)
    await rig.press(card, "Reset")
    await rig.until(lambda _: card.text == "This draft was reset.")
    assert card.labels == ()


async def test_run_starts_a_run_and_the_next_input_a_new_draft(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "say: hello")
    await rig.press(card, "Run")
    answer = await rig.ending(card)
    assert "hello" in answer.text.splitlines()
    await rig.until(lambda _: card.text.endswith("Run 1: demo") and not card.labels)
    assert rig.rows("SELECT prompt FROM runs") == [("* say: hello",)]
    await rig.say("two")
    fresh = await card_with(rig, text("two"))
    assert fresh is not card


async def test_two_taps_on_run_start_one_run(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    data = card.button("Run")["callback_data"]
    for press in [await rig.ada.press_data(card, data) for _ in range(3)]:
        await press.answered()
    await rig.ending(card)
    assert rig.rows("SELECT count(*) FROM runs") == [(1,)]


async def test_press_on_a_card_of_an_earlier_draft_is_told_so(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    data = card.button("Reset")["callback_data"]
    await rig.press(card, "Run")
    await rig.ending(card)
    await rig.say("two")
    await card_with(rig, text("two"))
    late = await rig.ada.press_data(card, data)
    assert (await late.answered()).text == "This draft has moved on."
    assert versions(rig) == [text("two")]


async def test_card_that_was_deleted_is_sent_anew(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    rig.api.expect_rejection("message to edit not found")
    await rig.ada.delete(card)
    await rig.say("two")
    again = await card_with(rig, text("one", "two"))
    assert again is not card
    assert again.labels == ("Run", "Revert", "Reset")


async def test_three_inputs_at_once_are_taken_in_in_order(rig: Rig, master: StandIn) -> None:
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    for said in ("wait 1", "wait 2", "wait 3"):
        await rig.say(said)
    await rig.sees_text("Taking in 3 messages")
    master.go()
    await card_with(rig, text("wait 1", "wait 2", "wait 3"))
    assert versions(rig)[0] == text("wait 1")


async def test_run_waits_for_what_was_said_before_it(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    await rig.say("wait two")
    await rig.until(lambda _: "Taking in 1 message" in card.text)
    await rig.press(card, "Run")
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]
    master.go()
    await rig.ending(card)
    assert rig.rows("SELECT prompt FROM runs") == [(text("one", "wait two"),)]


async def test_reset_discards_an_answer_that_comes_late(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    await rig.say("wait two")
    await rig.until_so(lambda: len(master.calls) == 2)
    await rig.press(card, "Reset")
    await rig.until(lambda chat: card not in chat.messages)
    master.go()
    await rig.say("three")
    await card_with(rig, text("three"))
    assert versions(rig) == [text("three")]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("break it", "the master is not well"),
        ("nothing here", "answer is empty"),
        ("flood it", "over 200000 characters"),
        ("wait for ever", "did not answer within 2 s"),
    ],
)
async def test_input_that_fails_is_kept_and_tried_again(
    rig: Rig, master: StandIn, said: str, why: str
) -> None:
    rig.configure(f'claude.command = "{master.path}"\ndrafts.timeout_s = 2')
    card = await draft(rig, "one")
    await rig.say(said)
    await rig.until(lambda _: why in card.text)
    assert card.labels == ("Retry", "Append as is", "Reset")
    assert versions(rig) == [text("one")]
    await rig.say("three")
    master.mend()
    master.go()
    await rig.press(card, "Retry")
    await rig.until(lambda _: card.text == text("one", said, "three"))


async def test_input_that_fails_can_be_appended_as_it_is(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    await rig.say("break it")
    await rig.until(lambda _: "Append as is" in card.labels)
    await rig.press(card, "Append as is")
    await rig.until(lambda _: card.text == "* one\n\nbreak it")
    assert card.labels == ("Run", "Revert", "Reset")


async def test_directives_of_the_first_input_choose_the_context(rig: Rig, master: StandIn) -> None:
    repo = rig.project("z80")
    rig.configure(f'claude.command = "{master.path}"\n[projects.z80]\npath = "{repo}"')
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    await rig.say("/z80 say: hello")
    card = await rig.sees(lambda m: m.text == "* say: hello\n\nctx: z80")
    await rig.press(card, "Run")
    await rig.ending(card)
    assert rig.rows("SELECT prompt, project FROM runs") == [("* say: hello", "z80")]


async def test_long_draft_is_shown_without_its_middle_and_run_whole(
    rig: Rig, master: StandIn
) -> None:
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    inputs = [letter * 3000 for letter in "abc"]
    for said in inputs:
        await rig.say(said)
    card = await rig.sees(lambda m: "more characters" in m.text and m.text.endswith("c" * 100))
    assert card.text.startswith("* aaa")
    await rig.until(lambda _: "Run" in card.labels)
    await rig.press(card, "Run")
    await rig.until_so(lambda: bool(rig.rows("SELECT prompt FROM runs")))
    assert rig.rows("SELECT prompt FROM runs") == [(text(*inputs),)]


async def test_draft_off_runs_messages_at_once_again(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    await rig.reply(await rig.say("/draft off"), "run at once")
    await rig.answer("say: now")
    await rig.reply(await rig.say("/draft on"), "put together")
    await rig.say("two")
    await rig.until(lambda _: card.text == text("one", "two"))


async def test_draft_show_sends_the_card_again(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    await rig.say("/draft show")
    await rig.sees(lambda m: m is not card and m.text == text("one") and "Run" in m.labels)
    await rig.until(lambda _: card.labels == ())


async def test_reply_to_a_run_continues_it_where_drafting_is_on(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "remember the number 42")
    await rig.press(card, "Run")
    answer = await rig.ending(card)
    assert "Nothing" not in (await rig.answer("what do you remember", to=answer)).text
    assert rig.rows("SELECT count(*) FROM drafts") == [(0,)]


async def test_draft_survives_kill_9(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one", "two")
    await rig.say("wait three")
    await rig.until_so(lambda: len(master.calls) == 3)
    # What it showed last, the next process does not know.
    rig.api.expect_rejection("message is not modified")
    await rig.stop(signal.SIGKILL)
    master.go()
    await rig.start()
    await rig.until(lambda _: card.text == text("one", "two", "wait three"))
    await rig.press(card, "Revert")
    await rig.until(lambda _: card.text == text("one", "two"))
    assert len([m for m in rig.chat.bot_messages if "* one" in m.text]) == 1


async def group_with_topics(rig: Rig, master: StandIn) -> tuple[Chat, Topic, Topic]:
    repo = rig.project("z80")
    rig.configure(
        f'claude.command = "{master.path}"\nallowed_user_ids = [{ADA}, {BOB}]\n'
        f'[projects.z80]\npath = "{repo}"\nchat_id = {GROUP}'
    )
    rig.api.person(BOB, "Bob")
    group = rig.api.supergroup(GROUP, forum=True)
    group.admins.add(ADA)
    topics = [await rig.ada.open_topic(group, name) for name in ("drafts", "other")]
    await rig.start()
    await rig.say("/draft on", chat=group, topic=topics[0])
    await rig.sees_text("put together", chat=group)
    return group, topics[0], topics[1]


async def test_all_of_a_topic_share_one_draft_and_other_topics_are_untouched(
    rig: Rig, master: StandIn
) -> None:
    group, topic, other = await group_with_topics(rig, master)
    await rig.say("one", chat=group, topic=topic)
    await rig.say("among ourselves", chat=group, topic=other)
    await rig.api.person(BOB).send(group, "two", topic=topic)
    card = await rig.sees(lambda m: m.text.startswith(text("one", "two")), chat=group)
    assert card.topic is topic
    assert len(master.calls) == 2


async def test_only_admins_may_press(rig: Rig, master: StandIn) -> None:
    group, topic, _ = await group_with_topics(rig, master)
    await rig.say("one", chat=group, topic=topic)
    card = await rig.sees(lambda m: "Run" in m.labels, chat=group)
    for label in ("Run", "Reset"):
        pressed = await rig.api.person(BOB).press(card, label)
        assert (await pressed.answered()).text == "Only admins of this chat may do that."
    assert versions(rig) == [text("one")]
    await rig.press(card, "Reset")
    await rig.until(lambda chat: card not in chat.messages, chat=group)


async def test_admin_is_asked_for_once_a_minute(rig: Rig, master: StandIn) -> None:
    group, topic, _ = await group_with_topics(rig, master)
    await rig.say("one", chat=group, topic=topic)
    card = await rig.sees(lambda m: "Run" in m.labels, chat=group)
    for _ in range(3):
        await (await rig.api.person(BOB).press(card, "Run")).answered()
    assert len(rig.api.sent("getChatMember")) == 1


async def test_admin_of_the_config_may_press(rig: Rig, master: StandIn) -> None:
    group, topic, _ = await group_with_topics(rig, master)
    group.admins.clear()
    await rig.stop()
    config = (rig.home / "takopi.toml").read_text()
    (rig.home / "takopi.toml").write_text(f"admin_user_ids = [{BOB}]\n{config}")
    await rig.start()
    await rig.say("one", chat=group, topic=topic)
    card = await rig.sees(lambda m: "Run" in m.labels, chat=group)
    await (await rig.api.person(BOB).press(card, "Reset")).answered()
    await rig.until(lambda chat: card not in chat.messages, chat=group)


def hearing(rig: Rig, master: StandIn, *, more: str = "") -> None:
    """Voice notes say what their bytes are."""
    ear = rig.folder / "ear"
    ear.write_text('#!/bin/sh\nexec cat "$1"\n')
    ear.chmod(0o755)
    rig.configure(f'claude.command = "{master.path}"\nvoice.command = ["{ear}"]\n{more}')


async def test_voice_note_is_taken_in_like_text_and_no_transcript_is_sent(
    rig: Rig, master: StandIn
) -> None:
    hearing(rig, master)
    await draft(rig, "one")
    before = len(rig.chat.bot_messages)
    await rig.ada.voice(rig.chat, b"two by voice")
    await rig.say("three")
    await card_with(rig, text("one", "two by voice", "three"))
    assert len(rig.chat.bot_messages) == before


async def test_voice_note_outside_of_drafts_is_a_run_and_its_directives_count(
    rig: Rig, master: StandIn
) -> None:
    repo = rig.project("z80")
    hearing(rig, master, more=f'[projects.z80]\npath = "{repo}"')
    await rig.start()
    note = await rig.ada.voice(rig.chat, b"/z80 say: heard")
    await rig.ending(note)
    assert rig.rows("SELECT prompt, project FROM runs") == [("say: heard", "z80")]


async def test_voice_note_that_cannot_be_written_down_is_answered(
    rig: Rig, master: StandIn
) -> None:
    hearing(rig, master, more="voice.max_s = 10")
    card = await draft(rig, "one")
    await rig.reply(await rig.ada.voice(rig.chat, b"long", duration_s=11), "10 s is the most")
    await rig.reply(await rig.ada.voice(rig.chat, b"  "), "nothing was heard")
    await rig.say("two")
    await rig.until(lambda _: card.text == text("one", "two"))


async def test_voice_note_without_a_transcriber_says_what_to_set(rig: Rig, master: StandIn) -> None:
    await rig.start()
    await rig.reply(await rig.ada.voice(rig.chat), "voice.base_url")
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]


async def attach(rig: Rig, master: StandIn, tmux: Server) -> None:
    """Bind Ada's chat to a window whose program writes down what it is typed."""
    tmux.start()
    rig.configure(f'claude.command = "{master.path}"\ndrafts.tmux_socket = "{tmux.name}"')
    await rig.start()
    await rig.reply(await rig.say("/attach work:0"), "Bound to the tmux window")
    await rig.until_so(lambda: "ready" in tmux.tmux("capture-pane", "-p", "-t", "work:0"))


async def test_run_types_the_draft_into_the_bound_window(
    rig: Rig, master: StandIn, server: Server
) -> None:
    await attach(rig, master, server)
    await rig.say("fix `it`")
    await rig.say("and $that")
    card = await rig.sees(lambda m: m.text.startswith(text("fix `it`", "and $that")))
    assert card.text.endswith("tmux: work:0")
    await rig.press(card, "Run")
    await rig.until(lambda _: card.text.endswith("Sent to the tmux window work:0"))
    typed = await server.until(b"\x1b[201~\r")
    assert typed == b"\x1b[200~* fix `it`\r* and $that\x1b[201~\r"
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]
    shown = await rig.say("/screen")
    await rig.reply(shown, "ready")


async def test_detach_clears_the_draft(rig: Rig, master: StandIn, server: Server) -> None:
    await attach(rig, master, server)
    await rig.say("one")
    card = await rig.sees(lambda m: m.labels == ("Run", "Reset"))
    await rig.reply(await rig.say("/detach"), "Detached from work:0")
    await rig.until(lambda _: card.labels == ())
    assert versions(rig) == []
    await rig.answer("say: at once")


async def test_window_that_is_killed_detaches_with_a_notice(
    rig: Rig, master: StandIn, server: Server
) -> None:
    await attach(rig, master, server)
    await rig.say("one")
    card = await rig.sees(lambda m: m.labels == ("Run", "Reset"))
    server.tmux("kill-window", "-t", "work:0")
    await rig.sees_text("The tmux window work:0 is gone", "its draft is cleared")
    await rig.until(lambda _: card.labels == ())
    assert versions(rig) == []


async def test_target_and_draft_survive_kill_9(rig: Rig, master: StandIn, server: Server) -> None:
    await attach(rig, master, server)
    await rig.say("one")
    card = await rig.sees(lambda m: m.labels == ("Run", "Reset"))
    # What it showed last, the next process does not know.
    rig.api.expect_rejection("message is not modified")
    await rig.stop(signal.SIGKILL)
    await rig.start()
    await rig.press(card, "Run")
    await server.until(b"* one\x1b[201~\r")


async def test_attach_offers_the_windows_that_are_open(
    rig: Rig, master: StandIn, server: Server
) -> None:
    server.start()
    rig.configure(f'drafts.tmux_socket = "{server.name}"')
    await rig.start()
    card = await rig.reply(await rig.say("/attach"), "bound to no tmux window")
    await rig.press(card, next(label for label in card.labels if label.startswith("work:0")))
    await rig.until(lambda _: card.text.startswith("Bound to the tmux window work:0"))
