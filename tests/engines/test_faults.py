"""F12 to F14 for every engine: silence, full pipes, and lines that nobody should write."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import trio

from takopi.core.events import Completed
from takopi.kit.proc import Keeper
from tests.conftest import Figures
from tests.engines.long_runs import ENGINES, long_run
from tests.engines.reading import read_alone, run_program
from tests.faults.promises import LONG

MIB = 1024 * 1024
PROMPT_BYTES = 2_000_000
SILENT_S = 30
LINE_BYTES = (300 if LONG else 100) * MIB
ROOM_BYTES = 64 * MIB
"""By how much takopi may grow, whatever an engine writes: the short form's line is longer, too."""


def write_part(folder: Path, name: str, lines: list[bytes]) -> str:
    """Lines that a program prints: the file they are in, as a shell reads its name."""
    path = folder / name
    path.write_bytes(b"\n".join(lines))
    return f"'{path}'"


def write_program(folder: Path, engine: str, body: str) -> Path:
    program = folder / engine
    program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


async def test_f12_thirty_silent_seconds_are_not_the_end(
    keeper: Keeper, tmp_path: Path, figures: Figures
) -> None:
    """All engines at once, because it takes so long."""
    heard: dict[str, Completed] = {}

    async def run(engine: str) -> None:
        lines = list(long_run(engine, 100))
        before = write_part(tmp_path, f"{engine}.before", [*lines[:26], b""])
        after = write_part(tmp_path, f"{engine}.after", lines[26:])
        body = f"cat {before}; sleep {SILENT_S}; cat {after}"
        heard[engine], _ = await run_program(
            engine, write_program(tmp_path, engine, body), keeper=keeper
        )

    with trio.fail_after(180):
        async with trio.open_nursery() as nursery:
            for engine in ENGINES:
                nursery.start_soon(run, engine)
    assert {engine: ended.error for engine, ended in heard.items()} == dict.fromkeys(ENGINES)
    figures("F12", silent_s=SILENT_S, engines=len(heard), ended=0)


@pytest.mark.parametrize("engine", ENGINES)
async def test_f13_two_megabytes_each_way_at_once(
    keeper: Keeper, tmp_path: Path, engine: str, figures: Figures
) -> None:
    lines = write_part(tmp_path, "lines", list(long_run(engine, 100)))
    noise = f"head -c {PROMPT_BYTES} /dev/zero >&2"
    listen = f"head -c {PROMPT_BYTES} | wc -c >'{tmp_path}/heard'"
    program = write_program(tmp_path, engine, f"{noise}\n{listen}\ncat {lines}")
    began = time.monotonic()
    with trio.fail_after(180):
        completed, _ = await run_program(engine, program, keeper=keeper, prompt="p" * PROMPT_BYTES)
    assert completed.ok, completed.error
    assert int((tmp_path / "heard").read_text(encoding="ascii")) == PROMPT_BYTES
    figures("F13", **{engine: f"{time.monotonic() - began:.2f} s"})


@pytest.mark.parametrize("engine", ENGINES)
async def test_f14_lines_that_cannot_be_read_cost_little_and_end_nothing(
    tmp_path: Path, engine: str, figures: Figures
) -> None:
    lines = list(long_run(engine, 100))
    unknown = [b'{"type":"unheard.of","number":%d}' % number for number in range(10_000)]
    before = write_part(tmp_path, "before", [*lines[:26], b"\xff\xfe{", *unknown, b""])
    unterminated = write_part(tmp_path, "after", lines[26:])
    oversize = f"head -c {LINE_BYTES} /dev/zero | tr '\\0' x; echo"
    program = write_program(tmp_path, engine, f"cat {before}; {oversize}; cat {unterminated}")
    with trio.fail_after(180):
        seen = await read_alone(engine, program)
    assert seen.error is None
    assert seen.warnings == [
        ("takopi.unreadable", "a line that is not JSON"),
        ("takopi.skipped", f"skipped a line of {LINE_BYTES} bytes"),
    ]
    assert seen.grown_bytes < ROOM_BYTES
    figures("F14", **{engine: f"+{seen.grown_bytes / MIB:.1f} MiB"})
