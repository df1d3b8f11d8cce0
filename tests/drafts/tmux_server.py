"""A tmux of a test's own, with a program in it that writes down what it is typed."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import trio

WITHIN_S = 60.0
# Asks for bracketed paste, as agents do, and writes down what it is typed.
ECHO = """\
import os, sys, tty
tty.setraw(0)
os.write(1, b"\\x1b[?2004hready")
with open(sys.argv[1], "ab", buffering=0) as out:
    while data := os.read(0, 4096):
        out.write(data)
"""


class Server:
    """A tmux of this test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"takopi-test-{secrets.token_hex(4)}"
        self.typed = folder / "typed"
        self.typed.touch()

    def tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-L", self.name, *args],
            check=True, capture_output=True, text=True, env=os.environ | {"TMUX": ""},
        )  # fmt: skip
        return done.stdout

    def start(self, *program: str) -> None:
        echo = (sys.executable, "-c", ECHO, str(self.typed))
        self.tmux("new-session", "-d", "-s", "work", "-x", "120", *(program or echo))

    async def until(self, part: bytes) -> bytes:
        with trio.fail_after(WITHIN_S):
            while True:
                if part in self.typed.read_bytes():
                    return self.typed.read_bytes()
                await trio.sleep(0.02)

    def end(self) -> None:
        """End the server, if it has not ended."""
        ended = ["tmux", "-L", self.name, "kill-server"]
        subprocess.run(ended, check=False, capture_output=True)
