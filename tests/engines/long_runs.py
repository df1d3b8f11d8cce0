"""Runs of any length, made of a recorded one: the same steps again and again under fresh ids."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takopi.core.ports import EngineJob
from takopi.engines.catalog import load_catalog
from takopi.engines.spec import Dialect, EngineSpec
from tests.engines.samples import DATA, load_sample

CWD = Path("/home/user/project")
SPECS: dict[str, EngineSpec[Any]] = {
    engine: entry
    for engine, entry in load_catalog(Path("/home/user/.takopi")).entries.items()
    if isinstance(entry, EngineSpec)
}

_COMMAND = "python -m pytest tests/engines -q -k long 2>&1 | tail -n 20; echo $?"
_OUTPUT = r"tests/engines/test_pump.py .......................... [ 24%] \u2713 passed\n" * 16
_REMARK = "The parser drops the last field when a line ends early, so I look at its tests first. "


@dataclass(frozen=True)
class _Recording:
    """Which lines of a recording begin and end it; what lies between can be repeated."""

    name: str
    first: int
    last: int
    ids: bytes


_RECORDINGS = {
    "claude": _Recording("tool_allowed", 1, 1, rb"toolu_\w+"),
    "codex": _Recording("tool", 3, 1, rb"item_\w+"),
    "opencode": _Recording("tool", 0, 3, rb"(?:prt|msg)_\w+"),
    "pi": _Recording("tool", 7, 4, rb"call_\w+"),
    "demo": _Recording("write_and_run", 1, 1, rb"step-\w+"),
}
ENGINES = [*_RECORDINGS]

# Recorded runs say little: words of a real one's length in their place.
_WORDS = {
    b"I will run a command.": (_REMARK * 2).encode(),
    b"echo hi": _COMMAND.encode(),
    rb'"hi\n"': f'"{_OUTPUT}"'.encode(),
    b'"hi"': f'"{_OUTPUT}"'.encode(),
}


def make_dialect(engine: str) -> Dialect:
    spec = SPECS[engine]
    return spec.dialect(spec.settings_type(), EngineJob("go on", CWD))


def long_run(engine: str, count: int) -> Iterator[bytes]:
    """A run of `count` lines."""
    recording = _RECORDINGS[engine]
    lines = [_filled(line) for line in load_sample(DATA / engine / f"{recording.name}.jsonl").lines]
    cut = len(lines) - recording.last
    head, steps, end = lines[: recording.first], lines[recording.first : cut], lines[cut:]
    yield from head
    yield from itertools.islice(_repeated(steps, recording.ids), count - len(head) - len(end))
    yield from end


def _filled(line: bytes) -> bytes:
    for short, real in _WORDS.items():
        line = line.replace(short, real)
    return line


def _repeated(steps: list[bytes], ids: bytes) -> Iterator[bytes]:
    for number in itertools.count():
        fresh = rb"\g<0>_%d" % number
        for step in steps:
            yield re.sub(ids, fresh, step)
