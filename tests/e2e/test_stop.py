from __future__ import annotations

import signal

import pytest
import trio

from tests.e2e.rig import WITHIN_S, Rig
from tests.kit.processes import until_gone

GRACE_S = 2.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_idle_daemon_ends_at_once_with_code_0(rig: Rig, number: int) -> None:
    await rig.start()
    await rig.answer("hello")
    assert "takopi runs: write to your bot in Telegram. Ctrl-C ends it.\n" in rig.log

    assert await rig.stop(number) == 0
    assert "waiting for" not in rig.log
    assert rig.alive() == []


async def test_short_run_may_end_before_takopi_does(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("think 2s then say: in good order")
    await rig.progress(prompt, "working")

    assert await rig.stop() == 0

    assert "in good order" in (await rig.ending(prompt)).text
    assert rig.alive() == []
    assert rig.rows("SELECT state FROM runs") == [("done",)]


async def test_long_run_is_interrupted_and_told_before_takopi_ends(rig: Rig) -> None:
    rig.configure("[limits]\ndrain_s = 0.5")
    await rig.start()
    prompt = await rig.say("sample steps then hang")
    await rig.progress(prompt, "rough today")

    assert await rig.stop() == 0

    notice = await rig.ending(prompt, "interrupted")
    assert "takopi was stopped while this was running." in notice.text
    assert "Let me see what there is" in notice.text
    assert notice.labels[:3] == ("Resume", "Retry", "Drop")
    assert rig.alive() == []
    await rig.start()
    await rig.answer("say: told once")
    assert len([m for m in rig.chat.messages if m.text.startswith("interrupted")]) == 1


async def test_run_interrupted_by_a_stop_is_resumed_after_the_start(rig: Rig) -> None:
    rig.configure("[limits]\ndrain_s = 0.1")
    await rig.start()
    prompt = await rig.say("remember the number 42 then hang")
    await rig.progress(prompt, "demo --resume")
    await rig.stop()
    notice = await rig.ending(prompt, "interrupted")
    await rig.start()

    resume_line = notice.text.splitlines()[-1]
    await rig.press(notice, "Resume")

    answer = await rig.sees_text("done · demo", "You said: “continue”")
    assert answer.text.splitlines()[-1] == resume_line
    await rig.until(lambda _: notice.text.endswith("goes on as run 2") and not notice.labels)


async def test_second_signal_does_not_wait(rig: Rig) -> None:
    rig.configure("[limits]\ndrain_s = 600")
    await rig.start()
    prompt = await rig.say("hang")
    await rig.progress(prompt, "demo --resume")

    rig.send_signal()
    await rig.until_logged("daemon.draining")
    assert "waiting for 1 run, 600 s at most; Ctrl-C again ends it at once\n" in rig.log
    assert await rig.stop() == 0

    await rig.ending(prompt, "interrupted")
    assert rig.alive() == []


async def test_message_that_comes_while_draining_runs_after_the_start(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("think 2s then say: first")
    await rig.progress(prompt, "working")
    rig.send_signal()
    await rig.until_logged("daemon.draining")
    late = await rig.say("say: second")
    await rig.wait()
    assert len(rig.rows("SELECT id FROM runs")) == 1

    await rig.start()

    assert "second" in (await rig.ending(late)).text


async def test_queued_runs_wait_for_the_next_start(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    first = await rig.say("think 2s then say: first")
    await rig.progress(first, "working")
    queued = await rig.say("say: second")
    await rig.progress(queued, "queued")

    await rig.stop()
    assert rig.rows("SELECT state FROM runs ORDER BY id") == [("done",), ("queued",)]
    await rig.start()

    assert "second" in (await rig.ending(queued)).text


async def test_f11_kill_9_of_the_daemon_leaves_no_process(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("fork, stubborn, steps 1 then hang")
    await rig.progress(prompt, "step 1 of 1")

    await rig.stop(signal.SIGKILL)

    # Grace and a second are what is promised; a busy machine gets the rest.
    began = trio.current_time()
    await until_gone(rig.mark, within_s=WITHIN_S)
    assert trio.current_time() - began < GRACE_S + 1 + 10
