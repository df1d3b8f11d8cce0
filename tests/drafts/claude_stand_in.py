"""A program in the place of `claude -p`: adds the input as a line, or does what the input says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypedDict

PROGRAM = """\
#!{python} -IS
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
text = sys.stdin.read()
with open(here + "/calls.jsonl", "a") as log:
    log.write(json.dumps({{"argv": sys.argv[1:], "stdin": text}}) + "\\n")
previous, _, new = text.removeprefix("Previous state:\\n").partition("\\n\\nNew input:\\n")
while "wait" in new and not os.path.exists(here + "/go"):
    time.sleep(0.02)
mended = os.path.exists(here + "/mended")
if "break" in new and not mended:
    sys.exit("the master is not well")
if "nothing" in new and not mended:
    sys.exit(0)
if "flood" in new and not mended:
    sys.stdout.write("x" * 1_000_000)
    sys.exit(0)
print(previous + ("\\n" if previous else "") + "* " + new)
"""


class Call(TypedDict):
    """How the program was called, and what it was told."""

    argv: list[str]
    stdin: str


class StandIn:
    """The program, and what it was called with."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.path = folder / "claude"
        self.path.write_text(PROGRAM.format(python=sys.executable))
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[Call]:
        log = self.folder / "calls.jsonl"
        if not log.exists():
            return []
        return [json.loads(line) for line in log.read_text().splitlines()]

    def go(self) -> None:
        """Let every call go on that waits."""
        (self.folder / "go").touch()

    def mend(self) -> None:
        """Let nothing break any more."""
        (self.folder / "mended").touch()
