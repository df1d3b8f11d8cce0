"""Sessions across a kill and a stop: what was decided counts, and nothing is begun by itself."""

from __future__ import annotations

import fcntl
import os
import signal

from takopi.turns.plan import Create, Execute
from tests.botapi.chats import Message
from tests.e2e.rig import WITHIN_S, Rig
from tests.e2e.test_sessions_modify import labelled, tap
from tests.e2e.turns import begin, done, plan, review, sessions, show, turns

HELLO = Create(path="hello.txt", content="Hello.\n")
NOTE = Execute(command="echo ran >> ran.txt")
WAIT = Execute(command="echo began >> ran.txt; until test -e go; do sleep 0.1; done")


async def restart(rig: Rig) -> None:
    # Whoever was killed cannot know what its last edits came to.
    rig.api.expect_rejection("message is not modified")
    await rig.stop(signal.SIGKILL)
    await rig.start()


async def interrupted(rig: Rig) -> Message:
    """A turn whose second action was being carried out when takopi was killed."""
    last = Create(path="last.txt", content="Last.\n")
    card = await show(rig, NOTE, WAIT, last)
    await rig.press(card, "Approve all")
    await rig.until_so(lambda: "began" in _ran(rig))
    await restart(rig)
    shown = await rig.sees(lambda m: "Report as failed" in m.labels)
    assert shown.labels == ("Report as failed", "Continue", "Quit")
    return shown


def _ran(rig: Rig) -> str:
    file = rig.cwd / "ran.txt"
    return file.read_text() if file.exists() else ""


async def test_killed_turn_is_told_and_nothing_is_begun_by_itself(rig: Rig) -> None:
    card = await interrupted(rig)
    assert "Turn 01 was interrupted while it was carried out." in card.text
    assert "- EXECUTE: echo ran >> ran.txt: ran, SUCCESS" in card.text
    assert "may have run, and is not run again" in card.text
    assert "- CREATE: last.txt: did not run" in card.text
    assert _ran(rig) == "ran\nbegan\n"
    assert not (rig.cwd / "last.txt").exists()


async def test_continue_runs_the_rest_once_however_often_it_is_pressed(rig: Rig) -> None:
    card = await interrupted(rig)
    data = card.button("Continue")["callback_data"]
    presses = [await rig.ada.press_data(card, data) for _ in range(2)]
    answers = [(await each.answered(within_s=WITHIN_S)).text for each in presses]
    assert answers == ["", "This was decided already."]
    await done(rig, "FAILURE")
    assert _ran(rig) == "ran\nbegan\n"
    assert (rig.cwd / "last.txt").exists()
    assert turns(rig) == ["01", "02"]


async def test_report_as_failed_runs_nothing_more(rig: Rig) -> None:
    card = await interrupted(rig)
    await rig.press(card, "Report as failed")
    await done(rig, "FAILURE", "interrupted")
    assert _ran(rig) == "ran\nbegan\n"
    assert not (rig.cwd / "last.txt").exists()


async def test_interrupted_turn_is_shown_again_by_execute(rig: Rig) -> None:
    card = await interrupted(rig)
    await rig.press(card, "Quit")
    await rig.until(lambda _: not card.buttons)
    await rig.reply(await rig.say("/session status"), "was interrupted")
    await rig.say("/session execute")
    again = await rig.sees(lambda m: m.id > card.id and "Continue" in m.labels)
    await rig.press(again, "Report as failed")
    await done(rig, "FAILURE")


async def test_card_and_what_was_chosen_on_it_survive_a_kill(rig: Rig) -> None:
    card = await show(rig, HELLO, NOTE)
    await tap(rig, card, "Modify")
    await tap(rig, card, "✓ 1. CREATE")
    confirm = await labelled(rig, card, "Confirm (1)")
    await restart(rig)
    await rig.press(card, confirm)
    await done(rig, "1 Succeeded")
    assert _ran(rig) == "ran\n"
    assert not (rig.cwd / "hello.txt").exists()


async def test_text_that_a_card_waits_for_is_taken_after_a_kill(rig: Rig) -> None:
    card = await plan(rig)
    await rig.press(card, "Skip")
    await rig.until(lambda _: card.labels == ("Keep this plan",))
    await restart(rig)
    await rig.say("Something else")
    await review(rig, after=card)
    assert "Something else" in (sessions(rig)[0] / "02/plan.md").read_text()


async def test_second_tap_after_a_kill_carries_nothing_out(rig: Rig) -> None:
    card = await show(rig, NOTE)
    data = card.button("Approve all")["callback_data"]
    await rig.press(card, "Approve all")
    await done(rig, "SUCCESS")
    await restart(rig)
    late = await rig.ada.press_data(card, data)
    assert (await late.answered(within_s=WITHIN_S)).text == "This was decided already."
    assert _ran(rig) == "ran\n"


async def test_turn_that_is_carried_out_may_end_before_takopi_does(rig: Rig) -> None:
    card = await show(rig, WAIT, HELLO)
    await rig.press(card, "Approve all")
    await rig.until_so(lambda: "began" in _ran(rig))
    rig.send_signal(signal.SIGTERM)
    await rig.until_logged("daemon.draining")
    (rig.cwd / "go").touch()
    assert await rig.wait() == 0
    assert (rig.cwd / "hello.txt").exists()
    assert (sessions(rig)[0] / "01/report.md").exists()
    await rig.start()
    await done(rig, "SUCCESS")


async def test_session_that_somebody_else_works_on_is_left_alone(rig: Rig) -> None:
    card = await show(rig, NOTE)
    (session,) = sessions(rig)
    fd = os.open(session, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        await rig.press(card, "Approve all")
        await rig.sees_text("somebody is at work on")
        assert not _ran(rig)
    finally:
        os.close(fd)
    await rig.press(await review(rig, after=card), "Approve all")
    await done(rig, "SUCCESS")


async def test_folder_that_is_gone_is_told(rig: Rig) -> None:
    session = await begin(rig)
    await rig.say("/session plan Hello")
    card = await review(rig)
    session.rename(session.with_name("gone"))
    assert (await rig.press(card, "Approve all")).text == "The plan has changed since it was shown."
    await rig.sees_text("turn 01 of", "is no longer there", "/session new <name>")
    await rig.reply(await rig.say("/session execute"), "there is no session here yet")
