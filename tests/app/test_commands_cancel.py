from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio
import trio.testing

from takopi.config.limits import Limits
from takopi.core.errors import Refused
from takopi.core.ids import MessageRef, RunId, Scope
from takopi.runs.buttons import RUN, RunPress
from tests.app.recording import CHAT, GROUP, SOON_S, Rig, config_with, open_rig

FORUM = Scope("telegram", GROUP)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig, None]:
    async with open_rig(tmp_path) as rig:
        yield rig


def cancel_button(run: RunId) -> str:
    return RUN.encode(RunPress("cancel", run))


async def prompt_of(rig: Rig, run: RunId) -> MessageRef:
    ref = (await rig.run(run)).prompt_ref
    assert ref is not None
    return ref


async def test_cancel_says_that_nothing_is_running(rig: Rig) -> None:
    (said,) = await rig.type("/cancel")

    assert said.text == "Nothing is running here."


async def test_cancel_alone_stops_the_only_run_which_says_so_itself(rig: Rig) -> None:
    run = await rig.start("hang")
    await rig.working(run)
    assert await rig.type("/cancel") == []

    assert (await rig.ended(run)).state == "cancelled"
    (said,) = await rig.flush()
    assert said.text.startswith("cancelled · demo")


async def test_cancel_drops_a_run_that_waits(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with(limits=Limits(max_runs=1))) as rig:
        first, second = await rig.start("hang"), await rig.start("hang")
        ref = await prompt_of(rig, second)
        await rig.type("/cancel", reply_to=ref.message_id)

        assert (await rig.run(second)).state == "cancelled"
        assert rig.desk.schedule.find(first) is not None


async def test_run_that_waits_is_dropped_for_good_even_if_takopi_stops_at_once(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path, config_with(limits=Limits(max_runs=1))) as rig:
        await rig.start("hang")
        second = await rig.start("hang")
        with trio.CancelScope() as stopping:
            stopping.cancel()
            await rig.desk.schedule.cancel(second)

        assert (await rig.run(second)).state == "cancelled"


@pytest.mark.parametrize("which", ["prompt", "progress"])
async def test_cancel_as_a_reply_stops_that_run_and_no_other(rig: Rig, which: str) -> None:
    first, second = await rig.start("hang"), await rig.start("hang")
    live = await rig.working(first)
    await rig.until(lambda: live.face.ref is not None)
    ref = await prompt_of(rig, first) if which == "prompt" else live.face.ref
    assert ref is not None
    await rig.type("/cancel", reply_to=ref.message_id)

    assert (await rig.ended(first)).state == "cancelled"
    assert rig.desk.schedule.find(second) is not None


async def test_cancel_as_a_reply_to_a_run_that_ended_says_how_it_did(rig: Rig) -> None:
    run = await rig.start("say: hi")
    await rig.ended(run)
    await rig.flush()
    ref = await prompt_of(rig, run)
    (said,) = await rig.type("/cancel", reply_to=ref.message_id)

    assert said.text == f"Run {run} has ended already (done)."


async def test_cancel_as_a_reply_to_something_else_is_refused(rig: Rig) -> None:
    run = await rig.start("hang")
    with pytest.raises(Refused, match="belongs to no run") as caught:
        await rig.type("/cancel", reply_to=1)

    assert "/cancel" in caught.value.way_out
    assert rig.desk.schedule.find(run) is not None


async def test_cancel_with_words_is_refused(rig: Rig) -> None:
    with pytest.raises(Refused, match="/cancel knows no everything"):
        await rig.type("/cancel everything")


async def test_cancel_of_a_run_that_is_being_cancelled_says_so(rig: Rig) -> None:
    run = await rig.start("stubborn then hang")
    await rig.working(run)
    await rig.type("/cancel")
    (said,) = await rig.type("/cancel")
    assert said.text == "This run is being cancelled already."

    ref = await prompt_of(rig, run)
    (said,) = await rig.type("/cancel", reply_to=ref.message_id)
    assert said.text == "This run is being cancelled already."


async def test_implicit_reply_of_a_topic_is_no_reply(rig: Rig) -> None:
    (said,) = await rig.type("/cancel", scope=Scope("telegram", GROUP, 7), reply_to=7)

    assert said.text == "Nothing is running here."


async def test_run_of_another_chat_is_not_cancelled(rig: Rig) -> None:
    run = await rig.start("hang", scope=FORUM)
    (said,) = await rig.type("/cancel")

    assert said.text == "Nothing is running here."
    assert rig.desk.schedule.find(run) is not None


async def test_run_of_another_topic_of_the_chat_is_cancelled(rig: Rig) -> None:
    run = await rig.start("hang", scope=Scope("telegram", GROUP, 7))
    await rig.working(run)
    await rig.type("/cancel", scope=Scope("telegram", GROUP, 8))

    assert (await rig.ended(run)).state == "cancelled"


async def test_cancel_with_several_runs_asks_which(rig: Rig) -> None:
    first, second = await rig.start("hang"), await rig.start("hang, please")
    (card,) = await rig.type("/cancel")
    assert card.text == "Which run?"
    assert card.labels == [f"{first} · demo · hang", f"{second} · demo · hang, please"]

    data = card.data(card.labels[1])
    assert await rig.press(card, data) == "Cancelling…"
    assert rig.card(card.ref).text.text == f"Cancelling {second} · demo · hang, please"
    assert rig.card(card.ref).buttons == ()
    assert (await rig.ended(second)).state == "cancelled"
    assert await rig.press(card, data) == "This run has ended already."
    assert rig.transport.cleared == [card.ref]
    assert rig.desk.schedule.find(first) is not None


async def test_picker_of_more_runs_than_it_can_show_says_so(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with(limits=Limits(max_queued=30, max_runs=1))) as rig:
        for _ in range(22):
            await rig.start("hang")
        (card,) = await rig.type("/cancel")

        assert len(card.labels) == 20
        assert card.text.startswith("Which of the 22 runs?")


async def test_pick_of_what_is_no_run_does_nothing(rig: Rig) -> None:
    ref = MessageRef("telegram", CHAT.chat_id, 1)
    assert await rig.press(ref, "pk:cancel:1:all") == "This choice is no longer there."


async def test_cancel_button_is_answered_before_anything_else(rig: Rig) -> None:
    run = await rig.start("hang")
    live = await rig.working(run)
    assert live.face.ref is not None
    before = len(rig.transport.log)
    assert await rig.press(live.face.ref, cancel_button(run)) == "Cancelling…"

    assert rig.transport.log[before] == "acknowledge"
    assert (await rig.ended(run)).state == "cancelled"
    assert rig.transport.cleared == []


async def test_cancel_button_stops_the_run_while_the_disk_does_not_answer(rig: Rig) -> None:
    run = await rig.start("hang")
    live = await rig.working(run)
    assert live.face.ref is not None
    gate = threading.Event()

    def block(_conn: sqlite3.Connection) -> None:
        gate.wait(SOON_S)

    async with trio.open_nursery() as nursery:
        try:
            nursery.start_soon(rig.db.write, block)
            nursery.start_soon(rig.db.read, block)
            await trio.testing.wait_all_tasks_blocked()
            assert await rig.press(live.face.ref, cancel_button(run)) == "Cancelling…"
            assert live.scope.cancel_called
        finally:
            gate.set()
    assert (await rig.ended(run)).state == "cancelled"


async def test_second_press_on_cancel_is_told(rig: Rig) -> None:
    run = await rig.start("stubborn then hang")
    live = await rig.working(run)
    assert live.face.ref is not None
    await rig.press(live.face.ref, cancel_button(run))
    answer = await rig.press(live.face.ref, cancel_button(run))
    assert answer == "This run is being cancelled already."

    await rig.ended(run)
    assert await rig.press(live.face.ref, cancel_button(run)) == "This run has ended already."


async def test_cancel_button_of_a_notice_goes_when_it_was_pressed(rig: Rig) -> None:
    run = await rig.start("hang")
    await rig.working(run)
    silent = MessageRef("telegram", CHAT.chat_id, 4)
    await rig.press(silent, cancel_button(run))

    assert rig.transport.cleared == [silent]


async def test_cancel_button_of_another_chat_does_nothing(rig: Rig) -> None:
    run = await rig.start("hang")
    foreign = MessageRef("telegram", GROUP, 4)
    answer = await rig.press(foreign, cancel_button(run))

    assert answer == "This button belongs to another chat."
    live = rig.desk.schedule.find(run)
    assert live is not None
    assert live.stage != "cancelling"
