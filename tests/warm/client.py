"""Starts takopi in a process that has imported it already, for tests that are not about its start.

Whatever is about the start itself, about memory, about kills or about what the kernel knows of the
process starts it in the ordinary way.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Literal

from tests.warm import server

_ASKING = threading.Lock()
"""One question at a time: the answers have no names."""


class WarmProcess:
    """A process that was forked for this test, as far as `subprocess.Popen` is one."""

    def __init__(self, kind: str, pid: int) -> None:
        self.pid = pid
        self._kind = kind
        self.returncode: int | None = None
        # Nobody else waits for it, so the number stays its own until `wait`.
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        if self.returncode is None and select.select([self._handle], [], [], 0)[0]:
            self._reap()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        if self.returncode is None:
            if not select.select([self._handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("takopi", timeout or 0)
            self._reap()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it is known to have ended."""
        if self.returncode is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _reap(self) -> None:
        self.returncode = int(_ask(self._kind, {"reap": self.pid}))
        os.close(self._handle)


def start(
    args: Sequence[str | os.PathLike[str]],
    *,
    program: str = "takopi",
    kind: Literal["daemon", "command"],
    cwd: Path,
    env: Mapping[str, str],
    fds: tuple[int, int, int],
    start_new_session: bool = False,
) -> WarmProcess:
    """Start takopi with these as its standard streams."""
    request = {
        "program": program,
        "args": [os.fspath(arg) for arg in args],
        "cwd": str(cwd),
        "environ": dict(env),
        "session": start_new_session,
    }
    return WarmProcess(kind, int(_ask(kind, request, fds)))


def run(
    args: Sequence[str | os.PathLike[str]],
    *,
    program: str = "takopi",
    cwd: Path,
    env: Mapping[str, str],
    stdin: str,
    timeout_s: float,
) -> subprocess.CompletedProcess[str]:
    """Run takopi to its end, and give what it printed."""
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode())
        given.seek(0)
        fds = (given.fileno(), out.fileno(), err.fileno())
        process = start(args, program=program, kind="command", cwd=cwd, env=env, fds=fds)
        try:
            code = process.wait(timeout_s)
        finally:
            process.kill()
        return subprocess.CompletedProcess(list(args), code, _read(out), _read(err))


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@cache
def _line(kind: str) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-m", server.__name__, str(theirs.fileno()), kind]
    root = Path(__file__).parents[2]
    warm = subprocess.Popen(argv, cwd=root, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    @atexit.register
    def end() -> None:
        ours.close()
        warm.wait(timeout=30)

    return ours


def _ask(kind: str, request: Mapping[str, object], fds: tuple[int, ...] = ()) -> bytes:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    with _ASKING:
        line = _line(kind)
        line.sendmsg([json.dumps(request).encode()], rights)
        answer = line.recv(64)
    assert answer, "the process that takopi is forked from has ended"
    return answer
