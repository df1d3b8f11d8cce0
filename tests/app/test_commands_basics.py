from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

import takopi
from takopi.app.commands.registry import COMMANDS
from takopi.app.commands.table import DESCRIPTIONS, NAMES
from takopi.config.loaded import Project
from takopi.core.context import Context
from takopi.core.ids import EngineId, Scope
from takopi.store import ledger
from takopi.store.ledger import NewRun
from takopi.store.scopes import Choices
from tests.app.recording import CHAT, DEMO, GROUP, Rig, config_with, open_rig, token


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig, None]:
    config = config_with(Project("z80", tmp_path, tmp_path / ".worktrees"))
    async with open_rig(tmp_path, config) as rig:
        yield rig


def test_every_command_of_the_table_does_something() -> None:
    assert set(COMMANDS) == NAMES


@pytest.mark.parametrize("command", ["/help", "/start", "/start payload"])
async def test_help_lists_commands_engines_and_projects(rig: Rig, command: str) -> None:
    (said,) = await rig.type(command)

    assert all(f"/{name} {what}" in said.text for name, what in DESCRIPTIONS.items())
    assert "/claude /codex /opencode /pi /demo" in said.text
    assert "/z80" in said.text


async def test_help_of_many_projects_still_fits_into_one_message(tmp_path: Path) -> None:
    projects = [Project(f"project-{n:04}", tmp_path, tmp_path) for n in range(1000)]
    async with open_rig(tmp_path, config_with(*projects)) as rig:
        (said,) = await rig.type("/help")

    assert len(said.text) <= rig.transport.max_units
    assert said.text.endswith("…")


async def test_command_is_replied_to_where_it_was_typed(rig: Rig) -> None:
    topic = Scope("telegram", GROUP, 7)
    (said,) = await rig.type("/help", scope=topic)

    assert said.scope == topic
    assert said.message.reply_to is not None


async def test_status_says_which_engines_ask_and_which_are_missing(rig: Rig) -> None:
    (said,) = await rig.type("/status")

    assert f"takopi {takopi.__version__}" in said.text
    assert "✓ demo: asks you before it acts" in said.text
    assert "✗ codex: not installed: npm" in said.text
    assert "0 of 4 working, 0 queued" in said.text
    assert "last poll: 3s ago" in said.text


async def test_status_counts_what_works_and_what_waits(tmp_path: Path) -> None:
    from takopi.config.limits import Limits

    async with open_rig(tmp_path, config_with(limits=Limits(max_runs=1))) as rig:
        await rig.start("hang")
        await rig.start("hang")
        (said,) = await rig.type("/status")

    assert "1 of 1 working, 1 queued" in said.text


async def test_runs_says_that_there_are_none(rig: Rig) -> None:
    (said,) = await rig.type("/runs")

    assert said.text == "No runs yet. Send a message to start one."
    assert said.labels == []


async def add_run(rig: Rig, prompt: str, *, scope: Scope = CHAT, ended: bool = True) -> int:
    context = Context("z80", "feat/x")

    def change(conn: ledger.sqlite3.Connection) -> int:
        new = NewRun(scope, prompt, DEMO, context=context)
        run = ledger.add(conn, new, now_ms=1)
        ledger.start(conn, run.id, cwd=Path("/nowhere"), now_ms=2)
        if ended:
            ledger.end(conn, run.id, "done", now_ms=3, answer=f"answer to {prompt}")
        return run.id

    return await rig.db.write(change)


async def test_runs_lists_the_last_ten_with_status_and_context(rig: Rig) -> None:
    for number in range(1, 12):
        await add_run(rig, f"task {number}.")
    await add_run(rig, "still at it", ended=False)
    (said,) = await rig.type("/runs")

    assert said.text.count("z80 @ feat/x") == 10
    assert "12 · running · demo" in said.text
    assert "task 2." not in said.text
    assert "11 · done · demo" in said.text
    assert said.labels == [f"Show {number}" for number in range(11, 2, -1)]


async def test_runs_of_another_chat_are_not_listed(rig: Rig) -> None:
    await add_run(rig, "a secret", scope=Scope("telegram", GROUP))
    (said,) = await rig.type("/runs")

    assert "secret" not in said.text


async def test_runs_of_all_topics_of_a_chat_are_listed(rig: Rig) -> None:
    await add_run(rig, "in a topic", scope=Scope("telegram", GROUP, 7))
    (said,) = await rig.type("/runs", scope=Scope("telegram", GROUP, 8))

    assert "in a topic" in said.text


async def test_new_forgets_the_thread_and_nothing_else(rig: Rig) -> None:
    chosen = Choices(context=Context("z80"), engine=DEMO, thread=token("abc"))
    await rig.choose(chosen)
    (said,) = await rig.type("/new")

    assert "begins a new conversation" in said.text
    assert await rig.choices() == replace(chosen, thread=None)


async def test_new_is_not_undone_by_a_run_that_ends_later(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with(session_mode="chat")) as rig:
        first = await rig.start("hang")
        await rig.working(first)
        await rig.type("/new")
        await rig.desk.schedule.cancel(first)
        await rig.ended(first)

        assert (await rig.choices()).thread is None


async def test_message_after_new_does_not_wait_for_the_run_before_it(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with(session_mode="chat")) as rig:
        await rig.start("slow start 10min")
        await rig.type("/new")
        run = await rig.ended(await rig.start("say: hello"))

    assert (run.state, run.answer) == ("done", "hello")


async def test_message_without_new_goes_on_with_the_last_conversation(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with(session_mode="chat")) as rig:
        first = await rig.ended(await rig.start("say: one"))
        second = await rig.ended(await rig.start("say: two"))

    assert first.thread == second.thread
    assert first.engine == EngineId("demo")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_command_is_in_the_reference(name: str) -> None:
    page = Path(__file__).parents[2] / "docs/reference/commands.md"
    assert f"`/{name}" in page.read_text(encoding="utf-8")
