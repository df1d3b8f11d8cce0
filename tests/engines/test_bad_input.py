"""Whatever is wrong with a CLI, its run ends in one sentence that says so, for every engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob, EngineLimits
from takopi.engines.pump import CliEngine
from takopi.kit.proc import Keeper
from tests.engines.long_runs import ENGINES, SPECS, long_run

STDERR_BYTES = 100_000_000


class Nobody:
    async def ask(self, ask: Ask) -> Answer:
        raise AssertionError(ask)


@dataclass
class Bench:
    keeper: Keeper
    folder: Path
    name: str

    def script(self, body: str, *, mode: int = 0o755) -> Path:
        path = self.folder / "cli"
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(mode)
        return path

    def half_a_run(self) -> str:
        """A file with the beginning of a run, steps included, that does not reach its result."""
        path = self.folder / "lines"
        lines = list(long_run(self.name, 100))[:26]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return f"'{path}'"

    async def run(
        self, command: Path, emit: Callable[[Event], None], *, resume: ResumeToken | None = None
    ) -> Completed:
        spec = SPECS[self.name]
        settings = spec.settings_type(command=str(command))
        engine = CliEngine(spec, settings, self.keeper, dict(os.environ))
        limits = EngineLimits(grace_s=0.3)
        with trio.fail_after(120):
            job = EngineJob("hi", self.folder, resume=resume, limits=limits)
            return await engine.run(job, emit, Nobody())

    async def fail(self, command: Path) -> str:
        """The sentence with which a run of this command fails."""
        events: list[Event] = []
        completed = await self.run(command, events.append)
        assert not completed.ok
        assert completed.error is not None
        assert "\n" not in completed.error
        assert sum(isinstance(event, Started) for event in events) <= 1
        return completed.error


@pytest.fixture(params=ENGINES)
def bench(request: pytest.FixtureRequest, keeper: Keeper, tmp_path: Path) -> Bench:
    return Bench(keeper, tmp_path, str(request.param))


async def test_missing_cli_says_what_installs_it(bench: Bench) -> None:
    missing = bench.folder / "nothing"
    error = await bench.fail(missing)
    assert str(missing) in error
    assert "No such file" in error
    assert error.endswith(f"Mend it with: {SPECS[bench.name].install}")


async def test_cli_that_is_missing_says_so_when_a_thread_is_resumed(bench: Bench) -> None:
    token = ResumeToken(SPECS[bench.name].id, "abc")
    completed = await bench.run(bench.folder / "nothing", lambda _event: None, resume=token)
    assert SPECS[bench.name].install in (completed.error or "")
    assert not completed.thread_lost


async def test_cli_that_is_not_executable_says_so(bench: Bench) -> None:
    command = bench.script("true", mode=0o644)
    assert "Permission denied" in await bench.fail(command)


async def test_cli_that_is_too_old_says_what_updates_it(bench: Bench) -> None:
    body = 'if [ "$1" = --version ]; then echo "v0.0.9 (beta)"; exit 0; fi\nexit 2'
    error = await bench.fail(bench.script(body))
    assert error.startswith(f"{bench.name} 0.0.9 is too old, takopi needs ")
    assert error.endswith(f"Mend it with: {SPECS[bench.name].install}")


@pytest.mark.parametrize("version", ["echo 99.0.1", "echo unknown", "exit 1", "yes 1"])
async def test_cli_that_is_new_enough_or_does_not_tell_is_not_called_too_old(
    bench: Bench, version: str
) -> None:
    body = f'if [ "$1" = --version ]; then {version} | head -c 100000; exit; fi\nexit 2'
    assert "too old" not in await bench.fail(bench.script(body))


async def test_crash_before_the_first_line_is_told_with_the_last_words(bench: Bench) -> None:
    command = bench.script("echo 'Error: the sea is too rough' >&2; exit 9")
    error = await bench.fail(command)
    assert error == f"{bench.name} exited with code 9 without a result: the sea is too rough"


async def test_cli_that_is_killed_is_told_with_the_signal(bench: Bench) -> None:
    error = await bench.fail(bench.script("kill -9 $$"))
    assert error == f"{bench.name} was ended by SIGKILL without a result."


@pytest.mark.parametrize("code", [0, 9])
async def test_exit_without_a_result_is_a_failure(bench: Bench, code: int) -> None:
    body = f"cat {bench.half_a_run()}; echo 'it is over' >&2; exit {code}"
    error = await bench.fail(bench.script(body))
    assert error == f"{bench.name} exited with code {code} without a result: it is over"


async def test_thread_of_a_run_that_crashed_can_be_resumed(bench: Bench) -> None:
    events: list[Event] = []
    command = bench.script(f"cat {bench.half_a_run()}; exit 9")
    completed = await bench.run(command, events.append)
    started = [event for event in events if isinstance(event, Started)]
    assert [event.resume for event in started] == [completed.resume]
    assert any(isinstance(event, Action) for event in events)


async def test_hundred_megabytes_of_stderr_hold_nothing_up(bench: Bench) -> None:
    flood = f"head -c {STDERR_BYTES} /dev/zero >&2; echo >&2; echo last words >&2"
    error = await bench.fail(bench.script(f"{flood}\ncat {bench.half_a_run()}\nexit 1"))
    assert error.endswith(" without a result: last words")
    assert len(error) < 400
