"""The real `takopi` command in a process of its own, with a home of its own."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.projects.repos import ENVIRON
from tests.warm import client as warm
from tests.warm.client import WarmProcess

BIN = Path(sys.executable).parent
DEADLINE_S = 120
# Only a controlling terminal turns Ctrl-C into a signal and is there as /dev/tty. The workers of
# pytest ignore that signal, and would hand this down.
OWN_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
Typed = str | Callable[[], str]
"""What is typed, or what makes it when its question has appeared."""


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Takopi:
    """Runs `takopi` as a person whose HOME is `folder` would; warm, it need not be imported."""

    def __init__(self, folder: Path, *, is_warm: bool = False) -> None:
        self.folder = folder
        self.is_warm = is_warm
        self.home = folder / ".takopi"
        self.config_file = self.home / "takopi.toml"
        self.tools = folder / "bin"
        self.tools.mkdir()
        self.cwd = folder
        self.environ = {
            name: value
            for name, value in ENVIRON.items()
            if not name.startswith(("TAKOPI_", "PYTHON", "NO_COLOR", "FORCE_COLOR"))
        } | {"HOME": str(folder), "PATH": f"{self.tools}:/usr/bin:/bin", "TERM": "xterm"}

    def __call__(
        self, *args: str, stdin: str = "", environ: Mapping[str, str] | None = None
    ) -> Outcome:
        return self.run("takopi", args, stdin=stdin, environ=self.environ | dict(environ or {}))

    def run(
        self, program: str, args: Sequence[str], *, stdin: str, environ: Mapping[str, str]
    ) -> Outcome:
        """Run one of the programs that takopi brings; `environ` is all of its environment."""
        if self.is_warm:
            done = warm.run(
                args,
                program=program,
                cwd=self.cwd,
                env=environ,
                stdin=stdin,
                timeout_s=DEADLINE_S,
            )
        else:
            done = subprocess.run(
                [BIN / program, *args],
                cwd=self.cwd,
                env=environ,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def on_terminal(self, *args: str, answers: Sequence[tuple[str, Typed]]) -> Outcome:
        """Run on a terminal, and type each answer when its question has appeared."""
        process, terminal = self.start_on_terminal(args)
        try:
            seen = _converse(terminal, answers, pid=process.pid)
            code = process.wait(DEADLINE_S)
        finally:
            process.kill()
            process.wait()
            os.close(terminal)
        return Outcome(code, seen, "")

    def start_on_terminal(
        self, args: Sequence[str]
    ) -> tuple[subprocess.Popen[bytes] | WarmProcess, int]:
        """Start on a terminal of its own: the process, and the other end of the terminal."""
        ours, theirs = pty.openpty()
        if self.is_warm:
            process = warm.start(
                args,
                kind="command",
                cwd=self.cwd,
                env=self.environ,
                fds=(theirs, theirs, theirs),
                start_new_session=True,
            )
        else:
            process = subprocess.Popen(
                [sys.executable, "-c", OWN_TERMINAL, BIN / "takopi", *args],
                cwd=self.cwd,
                env=self.environ,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        os.close(theirs)
        return process, ours

    def write(self, text: str) -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.config_file.write_text(text, encoding="utf-8")
        self.config_file.chmod(0o600)

    def install(self, name: str) -> None:
        """Put a program of that name on the PATH."""
        program = self.tools / name
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)


def _converse(terminal: int, answers: Sequence[tuple[str, Typed]], *, pid: int) -> str:
    deadline = time.monotonic() + DEADLINE_S
    seen, unread, waiting = "", "", list(answers)
    while True:
        ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing more came after: {seen}"
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # EIO is how Linux says that nobody holds the other end any more
            chunk = b""
        if not chunk:
            assert not waiting, f"{waiting[0][0]!r} was never asked: {seen}"
            return seen
        text = chunk.decode()
        seen, unread = seen + text, unread + text
        while waiting and waiting[0][0] in unread:
            question, answer = waiting.pop(0)
            unread = unread.partition(question)[2]
            typed = answer if isinstance(answer, str) else answer()
            _until_asleep(pid, deadline)
            os.write(terminal, typed.encode())


def _until_asleep(pid: int, deadline: float) -> None:
    """Wait until the process reads: no person types between its question and that, as a test can.

    A Ctrl-C in that instant would be noticed only with the next key.
    """
    stat = Path(f"/proc/{pid}/stat")
    while stat.read_bytes().rpartition(b")")[2].split()[0] != b"S":
        assert time.monotonic() < deadline
        time.sleep(0.001)
