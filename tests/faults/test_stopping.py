"""F20, F21 and F11 through the chat: a daemon that is told to stop, put to sleep, or killed."""

from __future__ import annotations

import signal

import trio
from msgspec.structs import replace

from takopi.config.limits import Limits
from takopi.core.context import Context
from takopi.interview.session import Order
from takopi.interview.store import Files
from tests.botapi.chats import Message
from tests.conftest import Figures
from tests.faults.promises import LONG
from tests.faults.rig import PATIENT, FaultRig, endings
from tests.interview.given import answered
from tests.kit.processes import until_gone
from tests.projects.repos import branches

DRAIN_S = Limits().drain_s if LONG else 3
ASLEEP_S = 120 if LONG else 3
GRACE_S = Limits().grace_s + 1
RUNNING = "SELECT id FROM runs WHERE state = 'running'"


async def test_f20_a_stop_drains_what_ends_and_tells_of_what_does_not(
    rig: FaultRig, figures: Figures
) -> None:
    rig.configure(f"{PATIENT}limits.drain_s = {DRAIN_S}\n")
    await rig.start()
    ends = [await rig.say(f"append starts.txt: e{n} then sleep 1s") for n in range(2)]
    hangs = [await rig.say(f"append starts.txt: h{n} then hang") for n in range(3)]
    await rig.until_so(lambda: len(rig.starts) == 5, lambda: rig.log[-3000:])
    began = trio.current_time()
    assert await rig.stop() == 0
    took_s = trio.current_time() - began
    assert rig.alive() == []
    assert not rig.rows(RUNNING)

    await rig.start()
    await rig.until_over()
    told = [[m.text.partition(" · ")[0] for m in endings(rig.chat, p)] for p in [*ends, *hangs]]
    assert told == [["done"]] * 2 + [["interrupted"]] * 3
    assert set(rig.starts.values()) == {1}
    if LONG:
        # The runs' own grace, and a moment for what is on its way out.
        assert took_s < DRAIN_S + 10
    figures("F20", done=2, interrupted=3, untold=0, stopped_s=round(took_s, 1), drain_s=DRAIN_S)


async def test_f20_a_stop_while_a_worktree_is_made_leaves_the_run_queued(rig: FaultRig) -> None:
    repo = rig.project("z80")
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch begun\nexec sleep 300\n")
    hook.chmod(0o755)
    rig.configure(
        f'{PATIENT}limits.drain_s = 0.5\ndefault_project = "z80"\n[projects.z80]\npath = "{repo}"\n'
    )
    await rig.start()
    prompt = await rig.say("@feat append starts.txt: one")
    begun = repo / ".worktrees" / "feat" / "begun"
    await rig.until_so(begun.exists, lambda: rig.log[-3000:])
    assert await rig.stop() == 0, rig.log
    assert branches(repo) == ["main"]

    hook.unlink()
    await rig.start()
    await rig.ending(prompt)
    assert (repo / ".worktrees" / "feat" / "starts.txt").read_text() == "one\n"


async def test_f20_a_stop_is_heeded_while_takopi_starts(rig: FaultRig) -> None:
    repo = rig.project("z80")
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch begun\nexec sleep 300\n")
    hook.chmod(0o755)
    rig.configure(f'{PATIENT}[projects.z80]\npath = "{repo}"\n')
    # It was confirmed, and takopi died before it made the worktree.
    order = Order(task="add auth", engine="demo", context=Context("z80", "feat"))
    confirmed = replace(answered(("Which?", "Both")), order=order, state="EXECUTING")
    Files(rig.home / "sessions").save(confirmed)
    rig.launch()
    begun = repo / ".worktrees" / "feat" / "begun"
    await rig.until_so(begun.exists, lambda: rig.log[-3000:])
    assert await rig.stop() == 0, rig.log

    hook.unlink()
    await rig.start()
    await rig.until_so(
        lambda: rig.rows("SELECT branch FROM runs WHERE state = 'done'") == [("feat",)],
        lambda: rig.log[-3000:],
    )


async def test_f21_a_daemon_that_slept_goes_on_without_a_storm(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start()
    working = await rig.say(f"append starts.txt: one then sleep {ASLEEP_S + 2}s")
    await rig.until_so(lambda: rig.starts == {"one": 1}, lambda: rig.log[-3000:])
    assert rig.process is not None
    rig.process.send_signal(signal.SIGSTOP)
    asleep = await rig.say("append starts.txt: two")
    await trio.sleep(ASLEEP_S)
    woken = trio.current_time()
    rig.process.send_signal(signal.SIGCONT)
    await rig.ending(asleep)
    took_s = trio.current_time() - woken
    await rig.ending(working)
    await rig.until_over()

    requests = [r for r in rig.api.requests if r.at_s >= woken]
    # Two progress messages with a few edits, two answers, two removals, and the polls between.
    assert len(requests) < 30, [r.method for r in requests]
    assert rig.starts == {"one": 1, "two": 1}
    figures("F21", asleep_s=ASLEEP_S, recovered_s=round(took_s, 1), requests=len(requests))


async def test_f11_nothing_of_a_run_is_left_after_its_cancel_or_a_kill(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start()
    prompt = await rig.say("fork, stubborn, append starts.txt: one then hang")
    card = await rig.progress(prompt)
    await rig.until_so(lambda: rig.starts == {"one": 1}, lambda: rig.log[-3000:])
    assert rig.process is not None
    own = len(rig.alive())
    began = trio.current_time()
    await rig.press(card, "Cancel")
    await rig.ending(prompt, "cancelled")
    cancelled_s = trio.current_time() - began
    assert len(rig.alive()) < own - 3

    await rig.say("fork, stubborn, append starts.txt: two then hang")
    await rig.until_so(lambda: rig.starts["two"] == 1, lambda: rig.log[-3000:])
    await rig.kill()
    began = trio.current_time()
    await until_gone(rig.mark, within_s=60)
    killed_s = trio.current_time() - began
    if LONG:
        assert max(cancelled_s, killed_s) < GRACE_S
    figures(
        "F11",
        survivors=0,
        after_cancel_s=round(cancelled_s, 1),
        after_kill_s=round(killed_s, 1),
    )


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]
