"""A terminal of a test's own: tmux on a socket of its own, with one command in it."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

DEADLINE_S = 120


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Terminal:
    """Runs a command; its exit code is there when it has ended, and the screen at any time."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        columns: int,
        lines: int,
    ) -> None:
        self.name = f"takopi-test-{secrets.token_hex(4)}"
        self.code_file = cwd.parent / f"{self.name}.code"
        command = f"{shlex.join(argv)}; echo $? > {self.code_file}; echo ended; exec sleep 1000"
        # What the terminal is, and how large, is tmux's own to say.
        own = {"TERM", "COLUMNS", "LINES"}
        given = [f"{name}={value}" for name, value in environ.items() if name not in own]
        size = ("-x", str(columns), "-y", str(lines))
        inside = ("env", "-i", "TERM=screen-256color", *given, "sh", "-c", command)
        self.tmux("new-session", "-d", *size, "-c", str(cwd), *inside)

    def tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-L", self.name, *args],
            check=True,
            capture_output=True,
            encoding="utf-8",
            env=os.environ | {"TMUX": "", "LC_ALL": "C.UTF-8"},
            timeout=DEADLINE_S,
        )
        return done.stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def until(self, part: str) -> str:
        """Wait until the screen shows this, and give all of it."""
        deadline = time.monotonic() + DEADLINE_S
        while part not in (screen := self.screen()):
            assert time.monotonic() < deadline, screen
            time.sleep(0.02)
        return screen

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def write(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def code(self) -> int:
        """The exit code, once the command has ended."""
        self.until("ended")
        return int(self.code_file.read_text("utf-8"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        ended = ["tmux", "-L", self.name, "kill-server"]
        subprocess.run(ended, check=False, capture_output=True, timeout=DEADLINE_S)
