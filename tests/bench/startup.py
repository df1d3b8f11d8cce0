"""How long `takopi --version` and a run of the demo engine take, against the bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from takopi.engines.demo.spec import PROGRAM
from tests.bench.measure import Row, median

ROUNDS = 25


def measure() -> list[Row]:
    takopi = Path(sys.executable).with_name("takopi")
    demo = [sys.executable, "-I", "-S", str(PROGRAM), "--threads"]
    ours: list[float] = []
    floor: list[float] = []
    run: list[float] = []
    isolated: list[float] = []
    for _ in range(ROUNDS):
        # Alternating, so that a slow moment of the machine falls on both.
        floor.append(_time_ms([sys.executable, "-c", "pass"]))
        ours.append(_time_ms([str(takopi), "--version"]))
        isolated.append(_time_ms([sys.executable, "-I", "-S", "-c", "pass"]))
        with tempfile.TemporaryDirectory() as threads:
            run.append(_time_ms([*demo, threads], b'{"type":"prompt","text":"hello"}'))
    return [
        Row(
            "start-up: takopi --version",
            median(ours),
            "ms",
            "python -c pass",
            median(floor),
            "at most 4x",
        ),
        Row(
            "start-up: a run of the demo engine",
            median(run),
            "ms",
            "python -I -S -c pass",
            median(isolated),
            "start to end",
        ),
    ]


def _time_ms(argv: list[str], prompt: bytes = b"") -> float:
    began = time.perf_counter()
    subprocess.run(argv, check=True, input=prompt, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000
