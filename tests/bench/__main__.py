"""Prints the table of figures: python -m tests.bench."""

from __future__ import annotations

import trio

from tests.bench import (
    daemon_crowd,
    daemon_memory,
    daemon_messages,
    daemon_plans,
    daemon_start,
    pipeline,
    prompts,
    sessions,
    spawn,
    startup,
    throughput,
)
from tests.bench.measure import print_table

HISTORY_ROWS = 100_000


def main() -> None:
    """Measure everything, and print each table as soon as it is there."""
    spawned, piped = trio.run(spawn.measure), trio.run(pipeline.measure)
    print_table([*startup.measure(), *spawned, throughput.measure(), prompts.measure(), *piped])
    print_table([sessions.measure()])
    print_table(trio.run(daemon_start.measure, HISTORY_ROWS))
    print_table(trio.run(daemon_messages.measure, HISTORY_ROWS))
    print_table(trio.run(daemon_plans.measure))
    print_table(trio.run(daemon_memory.measure))
    print_table(trio.run(daemon_crowd.measure))


if __name__ == "__main__":
    main()
