"""Prints the table of figures: python -m tests.bench."""

from __future__ import annotations

import trio

from tests.bench import pipeline, spawn, startup, throughput
from tests.bench.measure import print_table


def main() -> None:
    spawned, piped = trio.run(spawn.measure), trio.run(pipeline.measure)
    print_table([*startup.measure(), *spawned, throughput.measure(), *piped])


if __name__ == "__main__":
    main()
