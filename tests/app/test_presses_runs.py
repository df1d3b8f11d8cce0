from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from takopi.config.limits import Limits
from takopi.config.loaded import Project
from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.events import Completed, Usage
from takopi.core.ids import EngineId, MessageRef, ResumeToken, RunId, Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Card, Outgoing, Text
from takopi.kit.clock import now_ms
from takopi.present.cards import FinalStatus
from takopi.runs.buttons import RUN, RunPress, RunVerb, run_button
from takopi.runs.deliver import settle
from takopi.runs.recover import recover
from takopi.store import ledger, threads
from takopi.store.ledger import NewRun
from tests.app.recording import (
    CHAT,
    DEMO,
    GROUP,
    SILENT,
    Arrived,
    Rig,
    config_with,
    open_rig,
    token,
)
from tests.projects.repos import make_repo, write

LATE = "This was decided already."
ELSEWHERE = Scope("telegram", GROUP)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig, None]:
    async with open_rig(tmp_path) as rig:
        yield rig


def data(what: RunVerb, run: int) -> str:
    return RUN.encode(RunPress(what, RunId(run)))


async def add(rig: Rig, prompt: str, new: NewRun | None = None) -> RunId:
    """A run that works, as far as the store knows."""
    wanted = new or NewRun(CHAT, prompt, DEMO, prompt_ref=MessageRef("telegram", CHAT.chat_id, 3))
    cwd = rig.desk.shop.start_cwd

    def change(conn: sqlite3.Connection) -> RunId:
        run = ledger.add(conn, wanted, now_ms=now_ms())
        ledger.start(conn, run.id, cwd=cwd, now_ms=now_ms())
        return run.id

    return await rig.db.write(change)


async def end(
    rig: Rig,
    run_id: RunId,
    completed: Completed,
    *,
    status: FinalStatus = "error",
    text: str = "that is the answer",
    buttons: tuple[RunVerb, ...] = ("retry", "diff"),
    thread: ResumeToken | None = None,
) -> Arrived:
    """Let a run end in the store, and its last message arrive."""
    run = await rig.run(run_id)
    card = Card(Text(text), (tuple(run_button(what, run_id) for what in buttons),))
    messages = (Outgoing(card),)
    await rig.db.write(
        lambda conn: settle(conn, run, status, completed, thread=thread, messages=messages)
    )
    return (await rig.flush())[-1]


async def failed(rig: Rig, prompt: str = "say: hello") -> tuple[RunId, Arrived]:
    run_id = await add(rig, prompt)
    return run_id, await end(rig, run_id, Completed(ok=False, error="It broke."))


async def interrupted(rig: Rig, prompt: str = "say: hello") -> tuple[RunId, Arrived]:
    """A run that was alive at a crash, and its notice."""
    run_id = await add(rig, prompt)
    await recover(rig.desk.shop)
    (notice,) = await rig.flush()
    return run_id, notice


async def newest(rig: Rig) -> RunId:
    return (await rig.runs())[0].id


async def test_retry_runs_the_prompt_again_and_the_card_says_so(rig: Rig) -> None:
    run, card = await failed(rig)
    assert await rig.press(card, data("retry", run)) == SILENT
    again = await rig.ended(await newest(rig))

    assert (again.retry_of, again.answer) == (run, "hello")
    after = rig.card(card.ref)
    assert after.text.text == f"that is the answer\n\ntried again as run {again.id}"
    assert [button.label for row in after.buttons for button in row] == ["Diff"]


async def test_second_press_on_retry_starts_nothing(rig: Rig) -> None:
    run, card = await failed(rig)
    await rig.press(card, data("retry", run))
    assert await rig.press(card, data("retry", run)) == LATE

    assert len(await rig.runs()) == 2
    assert rig.transport.cleared == [card.ref]


async def test_retry_counts_once_even_after_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as before:
        run, card = await failed(before)
        await before.press(card, data("retry", run))
        await before.ended(await newest(before))
    async with open_rig(tmp_path) as rig:
        assert await rig.press(card, data("retry", run)) == LATE
        assert len(await rig.runs()) == 2


async def test_retry_is_answered_before_anything_is_written(rig: Rig) -> None:
    run, card = await failed(rig)
    before = len(rig.transport.log)
    await rig.press(card, data("retry", run))

    assert rig.transport.log[before] == "acknowledge"


async def test_card_without_room_for_the_decision_loses_its_buttons_only(rig: Rig) -> None:
    run_id = await add(rig, "say: hello")
    text = "x" * rig.transport.max_units
    card = await end(rig, run_id, Completed(ok=False), text=text, buttons=("retry",))
    await rig.press(card, data("retry", run_id))

    assert rig.card(card.ref) == Card(Text(text))


async def test_copy_of_a_card_that_the_store_does_not_know_loses_its_buttons(rig: Rig) -> None:
    run, _card = await failed(rig)
    copy = MessageRef("telegram", CHAT.chat_id, 4)
    await rig.press(copy, data("retry", run))

    assert rig.transport.cleared == [copy]
    assert len(await rig.runs()) == 2


async def test_afresh_starts_without_the_thread(rig: Rig) -> None:
    new = NewRun(CHAT, "say: hello", DEMO, thread=token("lost"))
    run_id = await add(rig, "", new)
    card = await end(rig, run_id, Completed(ok=False, thread_lost=True), buttons=("afresh",))
    await rig.press(card, data("afresh", run_id))
    again = await rig.ended(await newest(rig))

    assert again.answer == "hello"
    assert again.thread != token("lost")
    assert "started afresh as run" in rig.card(card.ref).text.text
    assert await rig.press(card, data("afresh", run_id)) == LATE


async def test_resume_goes_on_in_the_thread(rig: Rig) -> None:
    first = await rig.ended(await rig.start("say: one"))
    assert first.thread is not None
    new = NewRun(CHAT, "say: two", DEMO, thread=first.thread)
    run_id = await add(rig, "", new)
    await recover(rig.desk.shop)
    card = (await rig.flush())[-1]
    assert card.labels == ["Resume", "Retry", "Drop"]
    await rig.press(card, card.data("Resume"))
    again = await rig.ended(await newest(rig))

    assert (again.thread, again.prompt) == (first.thread, "continue")
    assert f"goes on as run {again.id}" in rig.card(card.ref).text.text
    for label in ("Resume", "Retry", "Drop"):
        assert await rig.press(card, card.data(label)) == LATE
    assert await newest(rig) == again.id
    assert again.retry_of == run_id


async def test_resume_without_a_thread_is_told_in_the_chat(rig: Rig) -> None:
    run, card = await interrupted(rig)
    await rig.press(card, data("resume", run))
    (said,) = await rig.flush()

    assert said.text == "this run had no thread yet\npress Retry"
    assert await rig.press(card, data("retry", run)) == SILENT


async def test_drop_says_so_and_nothing_can_be_pressed_after_it(rig: Rig) -> None:
    run, card = await interrupted(rig)
    assert card.labels == ["Retry", "Drop"]
    assert await rig.press(card, data("drop", run)) == SILENT

    assert rig.card(card.ref).text.text == f"{card.text}\n\ndropped"
    assert rig.card(card.ref).buttons == ()
    for what in ("drop", "retry"):
        assert await rig.press(card, data(what, run)) == LATE
    assert len(await rig.runs()) == 1


async def test_drop_counts_even_after_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as before:
        run, card = await interrupted(before)
        await before.press(card, data("drop", run))
    async with open_rig(tmp_path) as rig:
        assert await rig.press(card, data("retry", run)) == LATE
        assert len(await rig.runs()) == 1


async def test_drop_of_a_run_that_was_not_interrupted_changes_nothing(rig: Rig) -> None:
    run, card = await failed(rig)
    await rig.press(card, data("drop", run))

    assert rig.transport.edits == []
    assert await rig.press(card, data("retry", run)) == SILENT


@pytest.mark.parametrize("what", ["retry", "resume", "afresh", "drop", "show", "diff"])
async def test_press_from_another_chat_does_nothing(rig: Rig, what: RunVerb) -> None:
    run, _card = await interrupted(rig)
    foreign = MessageRef("telegram", GROUP, 4)
    assert await rig.press(foreign, data(what, run)) == "This button belongs to another chat."

    assert await rig.flush() == []
    assert len(await rig.runs()) == 1
    assert rig.transport.cleared == []


@pytest.mark.parametrize("what", ["retry", "resume", "afresh", "drop", "show", "diff"])
async def test_button_of_a_run_that_is_forgotten_is_told(rig: Rig, what: RunVerb) -> None:
    ref = MessageRef("telegram", CHAT.chat_id, 4)
    answer = await rig.press(ref, data(what, 77))

    assert answer == "This run is too old: takopi no longer knows it."
    assert await rig.flush() == []


@pytest.mark.parametrize(
    "what", ["rn:retry:99999999999999999999", "rn:eat:1", "rn:retry:x", "zz:1"]
)
async def test_forged_data_reaches_nobody(rig: Rig, what: str) -> None:
    await trio.lowlevel.checkpoint()
    assert rig.registry.route(Press("1", CHAT, 4, CHAT.chat_id, what)) is None


async def test_retry_of_a_run_that_has_not_ended_is_told(rig: Rig) -> None:
    run = await add(rig, "hang")
    await rig.press(MessageRef("telegram", CHAT.chat_id, 4), data("retry", run))

    assert [said.text for said in await rig.flush()] == [f"run {run} has not ended"]
    assert len(await rig.runs()) == 1


async def test_retry_with_an_engine_that_is_gone_is_refused(rig: Rig) -> None:
    run_id = await add(rig, "", NewRun(CHAT, "x", EngineId("gone")))
    run = await rig.run(run_id)
    await rig.db.write(
        lambda conn: settle(conn, run, "error", Completed(ok=False), thread=None, messages=())
    )
    with pytest.raises(Refused, match="there is no engine gone"):
        await rig.press(MessageRef("telegram", CHAT.chat_id, 4), data("retry", run_id))
    assert len(await rig.runs()) == 1


async def done(rig: Rig, answer: str, *, engine: EngineId = DEMO) -> RunId:
    thread = ResumeToken(engine, "abc")
    new = NewRun(CHAT, "q", engine, context=Context("z80", "x"))
    run_id = await add(rig, "", new)
    completed = Completed(
        ok=True, answer=answer, resume=thread, model="m1", usage=Usage(input_tokens=1200)
    )
    await end(rig, run_id, completed, status="done", thread=thread, buttons=())
    return run_id


async def test_show_sends_the_answer_again(rig: Rig) -> None:
    run = await done(rig, "It is **42**.")
    (card,) = await rig.type("/runs")
    assert await rig.press(card, card.data(f"Show {run}")) == SILENT
    (said,) = await rig.flush()

    assert said.text.startswith("done · demo · 0s\n\nIt is 42.\n\nm1 · 1.2k in\n")
    assert said.text.endswith("ctx: z80 @ x\ndemo --resume abc")
    assert said.message.reply_to == card.ref.message_id


async def test_reply_to_a_shown_answer_goes_on_with_its_thread(rig: Rig) -> None:
    run = await done(rig, "It is 42.")
    (card,) = await rig.type("/runs")
    await rig.press(card, card.data(f"Show {run}"))
    (said,) = await rig.flush()

    assert await rig.db.read(lambda conn: threads.thread_of(conn, said.ref)) == token("abc")


async def test_answer_is_shown_once_for_each_list(rig: Rig) -> None:
    run = await done(rig, "It is 42.")
    (card,) = await rig.type("/runs")
    await rig.press(card, card.data(f"Show {run}"))
    await rig.flush()
    answer = await rig.press(card, card.data(f"Show {run}"))
    assert answer == "It was shown already, below this list."
    assert await rig.flush() == []

    (card,) = await rig.type("/runs")
    await rig.press(card, card.data(f"Show {run}"))
    assert len(await rig.flush()) == 1


async def test_long_answer_is_shown_in_parts_and_as_a_file(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with(limits=Limits(max_parts=2))) as rig:
        run = await done(rig, "word " * 3000)
        (card,) = await rig.type("/runs")
        await rig.press(card, card.data(f"Show {run}"))
        *parts, file = await rig.flush()

    assert len(parts) == 2
    assert "(2/4)" in parts[1].text
    assert file.message.attachment is not None
    assert file.message.attachment.name == f"answer-{run}.md"


async def test_answer_of_an_engine_that_is_gone_is_shown(rig: Rig) -> None:
    run = await done(rig, "It is 42.", engine=EngineId("gone"))
    (card,) = await rig.type("/runs")
    await rig.press(card, card.data(f"Show {run}"))

    assert "It is 42." in (await rig.flush())[0].text


async def test_answer_of_a_run_that_works_is_not_there_yet(rig: Rig) -> None:
    run = await add(rig, "hang")
    ref = MessageRef("telegram", CHAT.chat_id, 4)

    assert await rig.press(ref, data("show", run)) == f"Run {run} has not ended yet."
    assert await rig.flush() == []


async def test_diff_of_a_run_shows_what_was_changed(rig: Rig, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    rig.config = config_with(Project("z80", repo, repo / ".worktrees"))
    run = await rig.ended(await rig.start("/z80 write new.txt: hello"))
    (card,) = await rig.flush()
    assert card.labels == ["Diff"]
    assert await rig.press(card, card.data("Diff")) == SILENT
    (said,) = await rig.flush()
    assert "+hello" in said.text
    assert await rig.db.read(lambda conn: threads.run_of(conn, said.ref)) == run.id

    await rig.press(card, card.data("Diff"))
    (said,) = await rig.flush()
    assert said.text == "z80: nothing has changed since this was shown."
    write(repo / "new.txt", "something else\n")
    await rig.press(card, card.data("Diff"))
    assert "+something else" in (await rig.flush())[0].text


async def test_diff_where_git_knows_nothing_is_told_in_the_chat(rig: Rig) -> None:
    run, card = await failed(rig)
    assert await rig.press(card, data("diff", run)) == SILENT
    (said,) = await rig.flush()

    assert "not a git repository" in said.text
    assert said.message.reply_to == card.ref.message_id


async def test_diff_of_a_folder_that_is_gone_is_told_in_the_chat(rig: Rig) -> None:
    run, card = await failed(rig)
    rig.desk.shop.start_cwd.rmdir()
    await rig.press(card, data("diff", run))

    assert [said.text for said in await rig.flush()] == [
        f"the folder of run {run} is no longer there"
    ]
