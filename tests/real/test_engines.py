"""Every engine of takopi with its real CLI: one suite, and what differs is in `scripts.TRAITS`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from takopi.core.events import Completed, Event
from takopi.core.ids import ResumeToken
from takopi.core.ports import Engine, EngineJob
from takopi.kit.proc import Keeper
from tests.kit.processes import MARK, alive, new_mark
from tests.model.server import Model, Request, serve_model
from tests.real.clis import ENGINES, RUN_S, native_program
from tests.real.engines import SPECS, MakeCli, Person, Player, free_hand
from tests.real.scripts import (
    API_ERROR,
    BROKEN,
    FLAKY,
    HANG,
    PLAIN,
    RECALL,
    REMEMBER,
    TRAITS,
    Case,
    command,
    endless_command,
    failing_command,
    script_of,
    where,
    write,
)

pytestmark = pytest.mark.real

CANARY = "CANARY-7f3a"


@pytest.fixture(params=ENGINES)
def player(request: pytest.FixtureRequest, make_cli: MakeCli, keeper: Keeper) -> Player:
    return free_hand(request.param, make_cli, keeper)


def assert_one_sentence(completed: Completed) -> None:
    assert not completed.ok
    assert completed.error
    assert "\n" not in completed.error


async def test_an_answer_comes_with_its_thread_and_its_cost(player: Player) -> None:
    ran = await player.play(PLAIN)
    assert (ran.completed.ok, ran.completed.answer) == (True, PLAIN.answer)
    assert ran.completed.error is None
    assert ran.completed.resume == ran.started.resume
    usage = ran.completed.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (100, 20, 0)


async def test_prompt_and_system_text_reach_the_model_as_they_were_written(player: Player) -> None:
    prompt = 'PLAIN: -- --help "quoted" \'and\' `ticked` $HOME \\n\n{"type": 1}\n  ünï 🐙'
    ran = await player.play(replace(PLAIN, prompt=prompt), system="SYSTEM: be brief, ünï")
    turns = ran.model.conversations[-1].turns
    assert any(prompt in turn.text for turn in turns if turn.role == "user")
    assert any("SYSTEM: be brief, ünï" in turn.text for turn in turns)


async def test_a_chosen_model_is_used_and_named(player: Player) -> None:
    named, asked_for = TRAITS[player.engine].other_model
    ran = await player.play(PLAIN, model=named)
    assert {conversation.model for conversation in ran.model.conversations} == {asked_for}
    assert ran.started.model == named
    assert ran.completed.model in {named, asked_for}


async def test_the_model_is_named_where_the_cli_tells_it(player: Player) -> None:
    ran = await player.play(PLAIN)
    used = ran.model.conversations[-1].model
    assert ran.completed.model == (used if TRAITS[player.engine].names_model else None)


@pytest.mark.parametrize("engine", [name for name in ENGINES if TRAITS[name].knows_models])
async def test_a_model_that_the_cli_does_not_know_is_named(
    make_cli: MakeCli, keeper: Keeper, engine: str
) -> None:
    ran = await free_hand(engine, make_cli, keeper).play(PLAIN, model="no/such-model")
    assert_one_sentence(ran.completed)
    assert "no/such-model" in (ran.completed.error or "")
    assert ran.model.conversations == []


async def test_a_command_runs_and_its_output_comes_back_through_the_model(player: Player) -> None:
    case = command(player.engine)
    ran = await player.play(case)
    assert ran.completed.answer == case.answer
    steps = ran.actions("command")
    assert {step.title for step in steps} == {"echo tako-$((40 + 2))"}
    assert len({step.id for step in steps}) == 1
    phases = ["started", "completed"] if TRAITS[player.engine].shows_steps_begin else ["completed"]
    assert [step.phase for step in steps] == phases
    assert (steps[-1].ok, steps[-1].detail) == (True, "tako-42")
    assert (ran.completed.usage.input_tokens, ran.completed.usage.output_tokens) == (200, 40)


async def test_a_failing_command_is_not_ok_and_the_run_is(player: Player) -> None:
    case = failing_command(player.engine)
    ran = await player.play(case)
    assert (ran.completed.ok, ran.completed.answer) == (True, case.answer)
    last = ran.actions("command")[-1]
    assert (last.phase, last.ok) == ("completed", False)
    assert "no-luck" in last.detail


async def test_a_file_is_really_written(player: Player, tmp_path: Path) -> None:
    path = tmp_path / "project" / "out.txt"
    ran = await player.play(write(player.engine, path))
    assert path.read_text(encoding="utf-8").strip() == "eight arms"
    last = ran.actions("file_change")[-1]
    assert (last.phase, last.ok) == ("completed", True)
    assert last.title.endswith("out.txt")
    assert str(tmp_path) not in last.title


async def test_commands_run_in_the_folder_of_the_job_whatever_pwd_says(
    player: Player, tmp_path: Path, cli_folder: Path
) -> None:
    astray = replace(player, environ={"PWD": str(tmp_path)})
    program = native_program(cli_folder / player.engine)
    ran = await astray.play(where(player.engine), command=str(program))
    assert Path(ran.completed.answer) == (tmp_path / "project").resolve()


async def test_a_resumed_thread_remembers_its_first_turn(player: Player) -> None:
    first = await player.play(REMEMBER)
    second = await player.play(RECALL, resume=first.completed.resume)
    assert second.completed.answer == RECALL.answer
    assert second.completed.resume == second.started.resume == first.completed.resume
    usage = second.completed.usage
    share = (100, 20) if TRAITS[player.engine].tells_share else (None, None)
    assert (usage.input_tokens, usage.output_tokens) == share


async def test_a_thread_in_another_folder_goes_on_or_says_where_it_is_kept(
    player: Player, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    first = await player.play(REMEMBER)
    second = await player.play(RECALL, resume=first.completed.resume, folder="elsewhere")
    if TRAITS[player.engine].goes_anywhere:
        assert second.completed.answer == RECALL.answer
        return
    assert_one_sentence(second.completed)
    assert second.completed.thread_lost
    assert str(tmp_path / "project") in (second.completed.error or "")
    assert second.model.conversations == []


async def test_an_unknown_thread_is_lost_before_the_model_is_asked(player: Player) -> None:
    unknown = ResumeToken(SPECS[player.engine].id, TRAITS[player.engine].unknown_thread)
    ran = await player.play(PLAIN, resume=unknown)
    assert_one_sentence(ran.completed)
    assert ran.completed.thread_lost
    assert ran.completed.resume is None
    assert ran.completed.error == f"{player.engine} no longer knows this thread; start a new one."
    assert ran.model.conversations == []


async def test_an_error_of_the_api_is_told_in_its_own_words(player: Player) -> None:
    ran = await player.play(API_ERROR)
    assert_one_sentence(ran.completed)
    assert "the scripted model refuses this" in (ran.completed.error or "")
    assert not ran.completed.thread_lost
    assert ran.completed.resume == ran.started.resume


async def test_a_second_try_that_works_is_no_failure(player: Player) -> None:
    ran = await player.play(FLAKY)
    assert (ran.completed.ok, ran.completed.answer) == (True, FLAKY.answer)


@pytest.mark.parametrize("engine", [name for name in ENGINES if TRAITS[name].shows_retries])
async def test_tries_are_shown_until_the_cli_gives_up(
    make_cli: MakeCli, keeper: Keeper, engine: str
) -> None:
    ran = await free_hand(engine, make_cli, keeper).play(BROKEN)
    assert_one_sentence(ran.completed)
    warnings = ran.actions("warning")
    # All tries are one step that goes on, not a list of them.
    assert len({warning.id for warning in warnings}) == 1
    assert len({warning.title for warning in warnings}) >= 2


async def _cancel(
    player: Player,
    case: Case,
    *,
    reached: Callable[[Model, str], object],
    check: Callable[[list[int]], None] = lambda _pids: None,
    **table: object,
) -> None:
    """Cancel a run once `reached` returns, and see that none of its processes is left."""
    mark = new_mark()
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(case)) as model:
            engine, cli = player.prepare(model, env={MARK: mark}, **table)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_run_for_ever, engine, EngineJob(case.prompt, cli.cwd))
                await _until(lambda: reached(model, mark))
                pids = alive(mark)
                assert pids
                check(pids)
                nursery.cancel_scope.cancel()
            assert alive(mark) == []


async def _run_for_ever(engine: Engine, job: EngineJob) -> None:
    events: list[Event] = []
    completed = await engine.run(job, events.append, Person())
    raise AssertionError(f"the run ended by itself: {completed}")


async def _until(reached: Callable[[], object]) -> None:
    # A process that has come so far has no event to wait for.
    while True:
        if reached():
            return
        await trio.sleep(0.02)


def _is_thinking(model: Model, _mark: str) -> list[Request]:
    return [request for request in model.requests if request.rule is HANG.rules[0]]


async def test_a_cancel_while_the_model_thinks_leaves_no_process(player: Player) -> None:
    await _cancel(player, HANG, reached=_is_thinking)


def _processes_with(word: str) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in words:
                found.append(int(folder.name))
    return found


async def test_a_cancel_while_a_command_runs_leaves_no_process(player: Player) -> None:
    # Found by its words, because a CLI may clean the environment of what it starts.
    seconds = f"3600.{random.randrange(10**12):012}"
    case = endless_command(player.engine, seconds)
    await _cancel(player, case, reached=lambda _model, _mark: _processes_with(seconds))
    assert _processes_with(seconds) == []


async def test_the_prompt_is_in_no_argument_and_no_environment(
    player: Player, tmp_path: Path, cli_folder: Path
) -> None:
    # pi paints over its own arguments, so they are also noted on the way in.
    noted = tmp_path / "arguments"
    launcher = tmp_path / "launcher"
    launcher.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > "{noted}"\nexec "{cli_folder / player.engine}" "$@"\n',
        encoding="utf-8",
    )
    launcher.chmod(0o755)

    def check(pids: list[int]) -> None:
        for pid in pids:
            for file in ("cmdline", "environ"):
                assert CANARY.encode() not in Path(f"/proc/{pid}/{file}").read_bytes()

    case = replace(HANG, prompt=f"{HANG.prompt} {CANARY}")
    await _cancel(player, case, reached=_is_thinking, check=check, command=str(launcher))
    assert noted.read_text(encoding="utf-8").strip()
    assert CANARY not in noted.read_text(encoding="utf-8")
