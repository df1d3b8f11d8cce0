"""What an engine remembers of a run does not grow with what it has said."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from takopi.engines.spec import Dialect
from takopi.engines.tools import MAX_OPEN_CALLS
from tests.engines.long_runs import ENGINES, long_run, make_dialect

MANY = 10_000
ROOM_BYTES = 32 * 1024
"""Far less than one id for each of many lines."""


def growth_bytes(dialect: Dialect, lines: Iterable[bytes], *, few: int) -> int:
    """How much more takopi's engines hold in memory after many lines than after few."""
    ours = tracemalloc.Filter(inclusive=True, filename_pattern="*/takopi/engines/*")
    kept: list[int] = []
    tracemalloc.start()
    try:
        for number, line in enumerate(lines, start=1):
            dialect.read(line)
            if number in {few, MANY}:
                gc.collect()
                found = tracemalloc.take_snapshot().filter_traces([ours])
                kept.append(sum(trace.size for trace in found.traces))
    finally:
        tracemalloc.stop()
    after_few, after_many = kept
    return after_many - after_few


@pytest.mark.parametrize("engine", ENGINES)
def test_memory_does_not_grow_with_the_lines_of_a_run(engine: str) -> None:
    # Looked at on the way: at its end, much is forgotten that would have grown.
    run = long_run(engine, MANY + 100)
    assert growth_bytes(make_dialect(engine), run, few=100) < ROOM_BYTES


CALLS: dict[str, Any] = {
    "claude": {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "<id>", "name": "Bash", "input": {}}]},
    },
    "codex": {
        "type": "item.started",
        "item": {"id": "<id>", "type": "command_execution", "command": "true"},
    },
    "opencode": {
        "type": "tool_use",
        "sessionID": "s",
        "part": {"id": "<id>", "tool": "bash", "state": {"status": "running"}},
    },
    "pi": {"type": "tool_execution_start", "toolCallId": "<id>", "toolName": "bash", "args": {}},
    "demo": {"type": "step", "id": "<id>", "kind": "command", "phase": "started"},
}


def calls(engine: str, count: int) -> Iterator[bytes]:
    """Calls of tools that are never answered."""
    line = json.dumps(CALLS[engine]).encode()
    for number in range(count):
        yield line.replace(b"<id>", b"call-%d" % number)


@pytest.mark.parametrize("engine", ENGINES)
def test_memory_does_not_grow_with_calls_that_never_end(engine: str) -> None:
    dialect = make_dialect(engine)
    assert dialect.read(next(calls(engine, 1)))
    started = calls(engine, MANY)
    assert growth_bytes(dialect, started, few=2 * MAX_OPEN_CALLS) < ROOM_BYTES
