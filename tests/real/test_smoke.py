from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.model.server import serve_model
from tests.real.clis import ENGINES, RUN_S, Cli, answer_of, thread_of
from tests.real.scripts import (
    API_ERROR,
    FLAKY,
    HANG,
    PLAIN,
    RECALL,
    REMEMBER,
    SLOW,
    TRAITS,
    Case,
    command,
    failing_command,
    script_of,
    write,
    write_twice,
)

pytestmark = pytest.mark.real

MakeCli = Callable[[str, str], Cli]
# What lets each of them use its tools unasked.
FREE_HAND = {
    "claude": ("--allowedTools", "Bash,Write"),
    "codex": ("-s", "danger-full-access"),
    "opencode": (),
    "pi": (),
}
every_engine = pytest.mark.parametrize("engine", ENGINES)


async def _play(make_cli: MakeCli, engine: str, case: Case) -> None:
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(case)) as model:
            ran = await make_cli(engine, model.base_url).run(case.prompt, *FREE_HAND[engine])
    assert (ran.code, answer_of(engine, ran)) == (0, case.answer), ran


@every_engine
@pytest.mark.parametrize("case", [PLAIN, SLOW, FLAKY], ids=["plain", "slow", "flaky"])
async def test_the_scripted_answer_arrives(make_cli: MakeCli, engine: str, case: Case) -> None:
    await _play(make_cli, engine, case)


@every_engine
async def test_a_tool_call_runs_for_real(make_cli: MakeCli, engine: str) -> None:
    await _play(make_cli, engine, command(engine))


async def test_codex_runs_commands_in_its_sandbox(make_cli: MakeCli) -> None:
    case = command("codex")
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(case)) as model:
            cli = make_cli("codex", model.base_url)
            ran = await cli.run(case.prompt, "-s", "workspace-write")
    assert answer_of("codex", ran) == case.answer, ran
    # It says so here if its home lies below the temporary folder, and leaves its helpers out.
    assert not ran.stderr


@every_engine
async def test_a_failing_command_is_told_to_the_model(make_cli: MakeCli, engine: str) -> None:
    await _play(make_cli, engine, failing_command(engine))


@every_engine
async def test_a_file_is_written(make_cli: MakeCli, engine: str, tmp_path: Path) -> None:
    path = tmp_path / "project" / "out.txt"
    await _play(make_cli, engine, write(engine, path))
    assert path.read_text().strip() == "eight arms"


@every_engine
async def test_two_files_are_written(make_cli: MakeCli, engine: str, tmp_path: Path) -> None:
    first, second = tmp_path / "project" / "one.txt", tmp_path / "project" / "two.txt"
    await _play(make_cli, engine, write_twice(engine, first, second))
    assert first.read_text().strip() == "eight arms"
    assert second.read_text().strip() == "three hearts"


@every_engine
async def test_a_resumed_thread_remembers_its_first_turn(make_cli: MakeCli, engine: str) -> None:
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(REMEMBER, RECALL)) as model:
            cli = make_cli(engine, model.base_url)
            first = await cli.run(REMEMBER.prompt)
            thread = thread_of(engine, first)
            second = await cli.run(RECALL.prompt, resume=thread)
    assert answer_of(engine, second) == RECALL.answer
    assert thread_of(engine, second) == thread


@every_engine
async def test_a_new_thread_remembers_nothing(make_cli: MakeCli, engine: str) -> None:
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(REMEMBER, RECALL)) as model:
            cli = make_cli(engine, model.base_url)
            await cli.run(REMEMBER.prompt)
            second = await cli.run(RECALL.prompt)
    assert answer_of(engine, second) == "I was never told."


@every_engine
async def test_an_unknown_thread_is_an_error_before_the_model_is_asked(
    make_cli: MakeCli, engine: str
) -> None:
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(PLAIN)) as model:
            cli = make_cli(engine, model.base_url)
            ran = await cli.run(PLAIN.prompt, resume=TRAITS[engine].unknown_thread)
    assert ran.code == 1
    assert model.conversations == []


@every_engine
async def test_an_api_error_is_on_the_lines(make_cli: MakeCli, engine: str) -> None:
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(API_ERROR)) as model:
            ran = await make_cli(engine, model.base_url).run(API_ERROR.prompt)
    assert "the scripted model refuses this" in json.dumps(ran.lines), ran
    # pi alone thinks that nothing went wrong.
    assert ran.code == (0 if engine == "pi" else 1)


@every_engine
async def test_a_run_can_be_ended_while_the_model_thinks(make_cli: MakeCli, engine: str) -> None:
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(HANG)) as model, trio.open_nursery() as nursery:
            cli = make_cli(engine, model.base_url)
            run = partial(
                trio.run_process,
                cli.argv(),
                stdin=HANG.prompt.encode(),
                cwd=cli.cwd,
                env=cli.env,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
            process = await nursery.start(run)
            request = await model.arrived(HANG.rules[0])
            process.terminate()
            await request.left.wait()
    assert process.returncode != 0
