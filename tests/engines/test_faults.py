"""F12 to F14 for every engine: silence, full pipes, and lines that nobody should write."""

from __future__ import annotations

import os
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from takopi.core.events import Action, Answer, Ask, Completed, Event
from takopi.core.ports import EngineJob
from takopi.engines.pump import CliEngine
from takopi.kit.proc import Keeper
from tests.engines.long_runs import ENGINES, SPECS, long_run

MIB = 1024 * 1024
PROMPT_BYTES = 2_000_000


class Nobody:
    async def ask(self, ask: Ask) -> Answer:
        raise AssertionError(ask)


@dataclass
class Bench:
    keeper: Keeper
    folder: Path
    engine: str

    def part(self, name: str, lines: list[bytes]) -> str:
        path = self.folder / f"{self.engine}.{name}"
        path.write_bytes(b"\n".join(lines))
        return f"'{path}'"

    async def run(self, body: str, *, prompt: str = "hi") -> tuple[Completed, list[Event]]:
        command = self.folder / self.engine
        command.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        command.chmod(0o755)
        spec = SPECS[self.engine]
        settings = spec.settings_type(command=str(command))
        cli = CliEngine(spec, settings, self.keeper, dict(os.environ))
        events: list[Event] = []
        with trio.fail_after(180):
            job = EngineJob(prompt, self.folder)
            return await cli.run(job, events.append, Nobody()), events


async def test_f12_thirty_silent_seconds_are_not_the_end(keeper: Keeper, tmp_path: Path) -> None:
    """All engines at once, because it takes so long."""
    heard: dict[str, Completed] = {}

    async def run(engine: str) -> None:
        bench = Bench(keeper, tmp_path, engine)
        lines = list(long_run(engine, 100))
        before, after = bench.part("before", [*lines[:26], b""]), bench.part("after", lines[26:])
        heard[engine], _ = await bench.run(f"cat {before}; sleep 30; cat {after}")

    async with trio.open_nursery() as nursery:
        for engine in ENGINES:
            nursery.start_soon(run, engine)
    assert {engine: ended.error for engine, ended in heard.items()} == dict.fromkeys(ENGINES)


@pytest.mark.parametrize("engine", ENGINES)
async def test_f13_two_megabytes_each_way_at_once(
    keeper: Keeper, tmp_path: Path, engine: str
) -> None:
    bench = Bench(keeper, tmp_path, engine)
    lines = bench.part("lines", list(long_run(engine, 100)))
    noise = f"head -c {PROMPT_BYTES} /dev/zero >&2"
    listen = f"head -c {PROMPT_BYTES} | wc -c >'{tmp_path}/heard'"
    completed, _ = await bench.run(f"{noise}\n{listen}\ncat {lines}", prompt="p" * PROMPT_BYTES)
    assert completed.ok, completed.error
    assert int((tmp_path / "heard").read_text(encoding="ascii")) == PROMPT_BYTES


@pytest.mark.parametrize("engine", ENGINES)
async def test_f14_lines_that_cannot_be_read_cost_little_and_end_nothing(
    keeper: Keeper, tmp_path: Path, engine: str
) -> None:
    bench = Bench(keeper, tmp_path, engine)
    lines = list(long_run(engine, 100))
    unknown = [b'{"type":"unheard.of","number":%d}' % number for number in range(10_000)]
    before = bench.part("before", [*lines[:26], b"\xff\xfe{", *unknown, b""])
    unterminated = bench.part("after", lines[26:])
    oversize = f"head -c {300 * MIB} /dev/zero | tr '\\0' x; echo"
    tracemalloc.start()
    try:
        completed, events = await bench.run(f"cat {before}; {oversize}; cat {unterminated}")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert completed.ok, completed.error
    warnings = [event for event in events if isinstance(event, Action) and event.kind == "warning"]
    ours = [(event.id, event.title) for event in warnings if event.id.startswith("takopi.")]
    assert ours == [
        ("takopi.unreadable", "a line that is not JSON"),
        ("takopi.skipped", f"skipped a line of {300 * MIB} bytes"),
    ]
    assert peak < 64 * MIB
