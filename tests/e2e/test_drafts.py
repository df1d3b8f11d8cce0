"""A draft in a private chat: its card, and what its buttons do."""

from __future__ import annotations

from tests.botapi.faults import Held
from tests.drafts.claude_stand_in import StandIn
from tests.e2e.drafting import card_with, draft, text, versions
from tests.e2e.rig import Rig


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


async def test_press_on_a_message_that_is_not_the_card_has_no_effect(
    rig: Rig, master: StandIn
) -> None:
    card = await draft(rig, "one")
    data = card.button("Reset")["callback_data"]
    await rig.say("/draft show")
    shown = await rig.sees(lambda m: m is not card and "Reset" in m.labels)
    assert shown.button("Reset")["callback_data"] == data
    late = await rig.ada.press_data(card, data)
    assert (await late.answered()).text == "This draft has moved on."
    await rig.until(lambda _: card.labels == ())
    assert versions(rig) == [text("one")]


async def test_card_is_sent_once_however_much_is_said_while_it_is_on_its_way(
    rig: Rig, master: StandIn
) -> None:
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    held = Held()
    rig.api.fail(held, method="sendMessage", applied=True, times=1)
    for said in ("one", "two"):
        await rig.say(said)
    await rig.until_so(lambda: len(versions(rig)) == 2)
    held.until.set()
    card = await card_with(rig, text("one", "two"))
    assert card.labels == ("Run", "Revert", "Reset")
    assert len(rig.rows("SELECT id FROM outbox WHERE dedupe_key LIKE 'draft:%'")) == 1


async def test_card_that_was_deleted_is_sent_anew(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    rig.api.expect_rejection("message to edit not found")
    await rig.ada.delete(card)
    await rig.say("two")
    again = await card_with(rig, text("one", "two"))
    assert again is not card
    assert again.labels == ("Run", "Revert", "Reset")


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
