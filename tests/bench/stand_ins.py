"""Engines whose moments are known: each notes its first instruction, and one says the time.

`demo` is takopi's own after that first instruction. `codex` speaks codex's lines, and the title of
each of its steps is the moment at which it was said.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import trio

ROOT = Path(__file__).parents[2]

_FIRST = """#!{python} -IS
import time
born = time.monotonic_ns()
import os, sys
with open({stamps!r}, "ab", buffering=0) as file:
    file.write(b"%d %d\\n" % (born, os.getpid()))
"""

_DEMO = """
sys.path.append({root!r})
from takopi.engines.demo.child.main import main
sys.exit(main(sys.argv[1:]))
"""

_CODEX = """
import re
count, every_s = re.search(r"tick ([0-9]+) ([0-9.]+)", sys.stdin.read()).groups()
def say(line):
    os.write(1, line.encode() + b"\\n")
say('{"type":"thread.started","thread_id":"t%d"}' % born)
for number in range(int(count)):
    time.sleep(float(every_s))
    say('{"type":"item.completed","item":{"id":"i%d","type":"command_execution","status":"completed",'
        '"command":"at %d","exit_code":0,"aggregated_output":""}}' % (number, time.monotonic_ns()))
say('{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"ticked"}}')
say('{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}')
"""


@dataclass(frozen=True)
class Born:
    """An engine's first instruction, in Trio's time, and its process."""

    at_s: float
    pid: int


class StandIns:
    """The programs in a folder of their own, and what they noted there."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._stamps = folder / "stamps"
        self._stamps.touch()
        first = _FIRST.format(python=sys.executable, stamps=str(self._stamps))
        self.demo = _write(folder / "demo", first + _DEMO.format(root=str(ROOT)))
        self.codex = _write(folder / "codex", first + _CODEX)

    @property
    def config(self) -> str:
        """The engines' tables."""
        return f'demo.command = "{self.demo}"\ncodex.command = "{self.codex}"\n'

    @property
    def born(self) -> list[Born]:
        """Every engine that was started, in order."""
        lines = self._stamps.read_text(encoding="ascii").splitlines()
        return [Born(trio_time_s(int(at)), int(pid)) for at, pid in map(str.split, lines)]

    @property
    def last_stamp_ns(self) -> int:
        """The latest first instruction, by the clock that all processes share."""
        return int(self._stamps.read_text(encoding="ascii").splitlines()[-1].split()[0])


def trio_time_s(monotonic_ns: int) -> float:
    """A moment of another process in Trio's time, which starts anywhere but runs alike."""
    return monotonic_ns / 1e9 + trio.current_time() - time.perf_counter()


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
