"""Has imported takopi, and forks a process that runs it whenever one is asked for.

A fork is a whole process of its own: its arguments, environment, folder and descriptors are those
that it was asked for with. What it saves is the third of a second that Python needs to import
takopi. It leaves by the end of this script, as any program does.
"""

from __future__ import annotations

import array
import fcntl
import gc
import importlib
import io
import json
import os
import signal
import socket
import sys
import termios
from pathlib import Path
from typing import Any

PROGRAMS = {
    "takopi": "takopi.cli.main",
    "teddy": "takopi.cli.session",
    "daemon_child": "tests.faults.daemon_child",
}
PRELOADED = {
    "daemon": ("takopi.app.daemon", "takopi.cli.run", "tests.faults.daemon_child"),
    "command": ("takopi.cli.app", "takopi.cli.session", "pydantic.type_adapter"),
}
"""A daemon holds less than the other commands, and a test may look at what it holds."""

MAX_REQUEST_BYTES = 1 << 20


def serve(line: socket.socket) -> dict[str, Any] | None:
    """Fork what is asked for; returns its request in the child, and None when nobody asks."""
    while True:
        # One packet is one request.
        packet, ancillary, _, _ = line.recvmsg(MAX_REQUEST_BYTES, socket.CMSG_SPACE(12))
        if not packet:
            return None
        request = json.loads(packet)
        if (pid := request.get("reap")) is not None:
            line.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
            continue
        fds = array.array("i")
        for _, _, data in ancillary:
            fds.frombytes(data)
        pid = os.fork()
        if pid == 0:
            line.close()
            become(request, fds)
            return request
        for fd in fds:
            os.close(fd)
        line.send(str(pid).encode())


def become(request: dict[str, Any], fds: array.array[int]) -> None:
    """Look to takopi as if it had been started like this."""
    if request["session"]:
        os.setsid()
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
    if request["session"] and os.isatty(0):
        # Only a controlling terminal turns Ctrl-C into a signal and is there as /dev/tty.
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.closerange(3, max(fds) + 1)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    program = Path(sys.executable).with_name(request["program"])
    sys.argv = [str(program), *request["args"]]
    sys.path[0] = str(program.parent)
    sys.stdin = sys.__stdin__ = _text(0, "r", errors="strict")
    sys.stdout = sys.__stdout__ = _text(1, "w", errors="strict")
    sys.stderr = sys.__stderr__ = _text(2, "w", errors="backslashreplace")


def _text(fd: int, mode: str, *, errors: str) -> io.TextIOWrapper:
    binary = os.fdopen(fd, f"{mode}b", closefd=False)
    return io.TextIOWrapper(binary, "utf-8", errors, line_buffering=fd == 2 or binary.isatty())


if __name__ == "__main__":
    # Whoever stops the tests from the terminal stops this by closing the line.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    importlib.import_module(PROGRAMS["takopi"]).load_structlog()
    for name in PRELOADED[sys.argv[2]]:
        importlib.import_module(name)
    # What is there already is never looked at again, so a child copies none of it.
    gc.collect()
    gc.freeze()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(importlib.import_module(PROGRAMS[asked["program"]]).main())
