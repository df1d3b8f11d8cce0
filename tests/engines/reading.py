"""An engine whose CLI is a program of the test, run here or in a process of its own.

As a program it prints what came of the run, and by how much the process grew that read it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import trio

from takopi.core.events import Action, Answer, Ask, Completed, Event
from takopi.core.ports import EngineJob
from takopi.engines.pump import CliEngine
from takopi.kit.proc import Keeper, open_keeper
from tests.engines.long_runs import SPECS
from tests.kit.memory import forget_largest, largest_bytes


class Reading(msgspec.Struct, frozen=True):
    """What came of a run that was read in a process of its own."""

    error: str | None
    warnings: list[tuple[str, str]]
    grown_bytes: int


class Nobody:
    async def ask(self, ask: Ask) -> Answer:
        raise AssertionError(ask)


async def run_program(
    engine: str, program: Path, *, keeper: Keeper, prompt: str = "hi"
) -> tuple[Completed, list[Event]]:
    """Run this program as the CLI of an engine, in its own folder."""
    spec = SPECS[engine]
    settings = spec.settings_type(command=str(program))
    cli = CliEngine(spec, settings, keeper, dict(os.environ))
    events: list[Event] = []
    return await cli.run(EngineJob(prompt, program.parent), events.append, Nobody()), events


async def read_alone(engine: str, program: Path) -> Reading:
    """Read a run in a process of its own."""
    argv = [sys.executable, "-m", __name__, engine, str(program)]
    done = await trio.run_process(argv, capture_stdout=True, cwd=Path(__file__).parents[2])
    return msgspec.json.decode(done.stdout, type=Reading)


async def _read(engine: str, program: Path) -> Reading:
    async with open_keeper(on_lost=lambda: None) as keeper:
        before = forget_largest()
        completed, events = await run_program(engine, program, keeper=keeper)
        grown = largest_bytes() - before
    warnings = [
        (event.id, event.title)
        for event in events
        if isinstance(event, Action) and event.kind == "warning" and event.id.startswith("takopi.")
    ]
    return Reading(None if completed.ok else completed.error or "", warnings, grown)


if __name__ == "__main__":
    engine, program = sys.argv[1:]
    sys.stdout.buffer.write(msgspec.json.encode(trio.run(_read, engine, Path(program))))
