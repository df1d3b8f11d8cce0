"""Prints the table of figures: python -m tests.bench."""

from __future__ import annotations

import trio

from tests.bench import spawn, startup, throughput
from tests.bench.measure import print_table


def main() -> None:
    print_table([startup.measure(), *trio.run(spawn.measure), throughput.measure()])


if __name__ == "__main__":
    main()
