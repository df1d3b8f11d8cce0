from __future__ import annotations

from tests.e2e.rig import Rig


async def test_queued_run_has_a_card_with_its_place_and_a_cancel(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    await rig.progress(await rig.say("hang"), "working")

    second = await rig.progress(await rig.say("say: second"))
    third = await rig.progress(await rig.say("say: third"))

    assert second.text.startswith("queued · demo · place 1")
    assert third.text.startswith("queued · demo · place 2")
    assert second.labels == third.labels == ("Cancel",)


async def test_place_moves_up_when_one_before_it_is_cancelled(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    await rig.progress(await rig.say("hang"), "working")
    dropped = await rig.say("say: second")
    second = await rig.progress(dropped)
    last = await rig.say("say: third")
    await rig.progress(last, "place 2")

    await rig.press(second, "Cancel")

    assert "It had not begun." in (await rig.ending(dropped, "cancelled")).text
    await rig.progress(last, "place 1")
    assert rig.rows("SELECT state, started_ms FROM runs WHERE id = 2") == [("cancelled", None)]


async def test_queued_run_begins_when_there_is_room(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    first = await rig.progress(await rig.say("hang"), "working")
    prompt = await rig.say("say: second")
    await rig.progress(prompt, "queued")

    await rig.press(first, "Cancel")

    assert "second" in (await rig.ending(prompt)).text


async def test_more_than_max_queued_are_refused(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1\nmax_queued = 1")
    await rig.start()
    await rig.progress(await rig.say("hang"), "working")
    await rig.progress(await rig.say("say: second"), "queued")

    refused = await rig.reply(await rig.say("say: third"))

    assert refused.text.splitlines() == [
        "1 run is waiting already",
        "wait for one to end, cancel one, or raise limits.max_queued",
    ]
    assert len(rig.rows("SELECT id FROM runs")) == 2


async def test_max_queued_counts_in_a_busy_thread_while_others_are_free(rig: Rig) -> None:
    rig.configure("[limits]\nmax_queued = 1")
    await rig.start()
    progress = await rig.progress(await rig.say("steps 1 then hang"), "step 1 of 1")
    await rig.progress(await rig.say("say: second", to=progress), "queued")

    refused = await rig.reply(await rig.say("say: third", to=progress))
    fresh = await rig.answer("say: of another thread")

    assert "1 run is waiting already" in refused.text
    assert "of another thread" in fresh.text


async def test_more_than_user_per_min_are_refused(rig: Rig) -> None:
    rig.configure("[limits]\nuser_per_min = 2")
    await rig.start()
    for n in range(2):
        await rig.answer(f"say: {n}")

    refused = await rig.reply(await rig.say("say: third"))

    assert refused.text.splitlines() == [
        "that is more than 2 messages in a minute",
        "wait a little, or raise limits.user_per_min",
    ]


async def test_edit_of_a_queued_prompt_replaces_it(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    first = await rig.progress(await rig.say("hang"), "working")
    prompt = await rig.say("say: before")
    await rig.progress(prompt, "queued")

    await rig.ada.edit(prompt, "say: after")
    await rig.until_settled(3)
    await rig.press(first, "Cancel")

    answer = await rig.ending(prompt)
    assert "after" in answer.text
    assert "before" not in answer.text


async def test_edit_of_a_prompt_that_runs_changes_nothing(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("think 2s then say: before")
    await rig.progress(prompt, "working")

    await rig.ada.edit(prompt, "say: after")

    assert "before" in (await rig.ending(prompt)).text
    await rig.until_settled(2)
    assert len(rig.rows("SELECT id FROM runs")) == 1
