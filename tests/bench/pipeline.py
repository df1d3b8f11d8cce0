"""CPU and memory per line of an engine, from its pipe to the events, against reading JSON alone.

Both sides read the same bytes from the same program. The floor makes plain data of every line and
throws it away; an engine understands it, words it and says it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec

from takopi.core.events import Answer, Ask, Event
from takopi.core.ports import EngineJob
from takopi.engines.pump import CliEngine
from takopi.kit.proc import Keeper, open_keeper
from tests.bench.measure import Row, median
from tests.engines.long_runs import ENGINES, SPECS, long_run

LINES = 50_000
FEW_LINES = 5_000
ROUNDS = 3


class _Nobody:
    async def ask(self, ask: Ask) -> Answer:
        raise AssertionError(ask)


async def measure() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        async with open_keeper(on_lost=lambda: None) as keeper:
            for engine in ENGINES:
                program = _make_program(Path(folder), engine, LINES)
                rows.append(await _measure_speed(keeper, program, engine))
            few, many = (_make_program(Path(folder), "claude", n) for n in (FEW_LINES, LINES))
            rows.append(
                Row(
                    "memory: claude at its last line",
                    await _kept_kib(keeper, many, "claude"),
                    "Ki",
                    f"after {FEW_LINES} lines",
                    await _kept_kib(keeper, few, "claude"),
                    f"no growth in {LINES} lines",
                )
            )
    return rows


async def _measure_speed(keeper: Keeper, program: Path, engine: str) -> Row:
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        floor.append(_read_and_decode(program))
        began = time.thread_time()
        await _run(keeper, program, engine)
        ours.append(time.thread_time() - began)
    return Row(
        f"{engine}: pipe to event",
        median(ours) / LINES * 1e6,
        "us",
        "bare read + msgspec decode",
        median(floor) / LINES * 1e6,
        "CPU per line, at most 4x" if engine == "claude" else "CPU per line",
    )


def _make_program(folder: Path, engine: str, count: int) -> Path:
    """A program that says a run of that many lines."""
    lines, program = folder / f"{engine}-{count}.jsonl", folder / f"{engine}-{count}"
    with lines.open("wb") as file:
        file.writelines(line + b"\n" for line in long_run(engine, count))
    program.write_text(f"#!/bin/sh\nexec cat '{lines}'\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def _read_and_decode(program: Path) -> float:
    decoder = msgspec.json.Decoder()
    with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        began = time.thread_time()
        for line in process.stdout:
            decoder.decode(line)
        return time.thread_time() - began


async def _run(
    keeper: Keeper, program: Path, engine: str, emit: Callable[[Event], None] = lambda _event: None
) -> None:
    spec = SPECS[engine]
    settings = spec.settings_type(command=str(program))
    cli = CliEngine(spec, settings, keeper, dict(os.environ))
    completed = await cli.run(EngineJob("go on", program.parent), emit, _Nobody())
    assert completed.ok, completed.error


async def _kept_kib(keeper: Keeper, program: Path, engine: str) -> float:
    """What the run has allocated and not given back when it says its last step."""
    kept = 0

    def look(event: Event) -> None:
        nonlocal kept
        kept = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        await _run(keeper, program, engine, look)
    finally:
        tracemalloc.stop()
    return kept / 1024
