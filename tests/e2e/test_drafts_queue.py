"""What is said goes into the draft in order, and what the master does to it loses nothing."""

from __future__ import annotations

import signal

import pytest

from takopi.drafts.master import SYSTEM
from tests.drafts.claude_stand_in import StandIn
from tests.e2e.drafting import card_with, draft, text, versions
from tests.e2e.rig import WITHIN_S, Rig
from tests.kit.processes import MARK, alive, new_mark, until_gone


async def test_three_inputs_at_once_are_taken_in_in_order(rig: Rig, master: StandIn) -> None:
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    inputs = ("wait 1", "wait 2", "wait 3")
    for said in inputs:
        await rig.say(said)
    await rig.sees_text("Taking in 3 messages")
    master.go()
    await card_with(rig, text(*inputs))
    assert versions(rig) == [text(*inputs[:count]) for count in (1, 2, 3)]


async def test_run_waits_for_what_was_said_before_it(rig: Rig, master: StandIn) -> None:
    card = await draft(rig, "one")
    await rig.say("wait two")
    await rig.until(lambda _: "Taking in 1 message" in card.text)
    await rig.press(card, "Run")
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]
    master.go()
    await rig.ending(card)
    assert rig.rows("SELECT prompt FROM runs") == [(text("one", "wait two"),)]


async def test_reset_ends_the_master_at_work_and_what_it_would_have_said(
    rig: Rig, master: StandIn
) -> None:
    mark = new_mark()
    rig.configure(f'claude.command = "{master.path}"\nclaude.env.{MARK} = "{mark}"')
    card = await draft(rig, "one")
    await rig.say("wait two")
    await rig.until_so(lambda: len(master.calls) == 2)
    assert alive(mark)
    await rig.press(card, "Reset")
    await rig.until(lambda chat: card not in chat.messages)
    await until_gone(mark, within_s=WITHIN_S)
    master.go()
    await rig.say("three")
    await card_with(rig, text("three"))
    assert versions(rig) == [text("three")]


@pytest.mark.parametrize(
    ("said", "why", "timeout_s"),
    [
        ("break it", "the master is not well", 60),
        ("nothing here", "answer is empty", 60),
        ("flood it with 1 MB", "over 200000 characters", 60),
        # Long enough for the other inputs on a busy machine.
        ("wait for ever", "did not answer within 8 s", 8),
    ],
)
async def test_input_that_fails_is_kept_and_tried_again(
    rig: Rig, master: StandIn, said: str, why: str, timeout_s: int
) -> None:
    rig.configure(f'claude.command = "{master.path}"\ndrafts.timeout_s = {timeout_s}')
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


async def test_master_gets_the_previous_state_and_the_new_input(rig: Rig, master: StandIn) -> None:
    await draft(rig, "one", "two")
    assert [call["stdin"] for call in master.calls] == [
        "Previous state:\n\n\nNew input:\none",
        "Previous state:\n* one\n\nNew input:\ntwo",
    ]
    argv = [call["argv"] for call in master.calls]
    assert argv[0] == argv[1]
    assert argv[0][:3] == ["-p", "--system-prompt", SYSTEM]


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
