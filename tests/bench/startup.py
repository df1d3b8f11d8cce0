"""How long `takopi --version` takes, against the bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.bench.measure import Row, median

ROUNDS = 25


def measure() -> Row:
    takopi = Path(sys.executable).with_name("takopi")
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        # Alternating, so that a slow moment of the machine falls on both.
        floor.append(_time_ms([sys.executable, "-c", "pass"]))
        ours.append(_time_ms([str(takopi), "--version"]))
    return Row(
        "start-up: takopi --version",
        median(ours),
        "ms",
        "python -c pass",
        median(floor),
        "at most 4x",
    )


def _time_ms(argv: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000
