"""Finding processes by a mark in their environment, which every descendant inherits."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import trio

from takopi.kit.proc import Command

MARK = "TAKOPI_TEST_MARK"

STUBBORN = {
    "plain": "trap '' TERM; sleep 300 & sleep 300",
    "setsid": "trap '' TERM; setsid sleep 300 & sleep 300",
    "double fork": "trap '' TERM; (setsid sleep 300 &); (sleep 300 &); sleep 300",
}
"""Shell scripts whose processes ignore SIGTERM, and how far they run from their parent."""


def new_mark() -> str:
    return uuid.uuid4().hex


def marked(mark: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], MARK: mark, **(extra or {})}


def shell(script: str, mark: str) -> Command:
    return Command(["sh", "-c", script], Path("/"), marked(mark))


def alive(mark: str) -> list[int]:
    """Every living process that carries the mark, wherever it was reparented to."""
    return alive_with(MARK, mark)


def alive_with(name: str, value: str) -> list[int]:
    """Every living process that has this variable in its environment."""
    needle = f"{name}={value}".encode()
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environ = (folder / "environ").read_bytes()
                state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if needle in environ.split(b"\0") and state not in {b"Z", b"X"}:
                found.append(int(folder.name))
    return found


def descendants(pid: int) -> list[int]:
    """Every process below this one."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text(encoding="ascii").split()):
            found += [child, *descendants(child)]
    return found


async def until_alive(mark: str, count: int) -> None:
    with trio.fail_after(30):
        await _until(lambda: len(alive(mark)) >= count)


async def until_gone(mark: str, *, within_s: float) -> None:
    with trio.fail_after(within_s):
        await _until(lambda: not alive(mark))


async def _until(reached: Callable[[], bool]) -> None:
    # The kernel has no event for "no process carries this mark".
    while True:
        if reached():
            return
        await trio.sleep(0.01)
