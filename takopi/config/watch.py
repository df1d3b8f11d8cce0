"""Hands over every good change of the config, and says once when one cannot be used.

The file is looked at once a second rather than watched by inotify: that would need watches on
the folder, on a link and on what it points to, would miss network and shared mounts, and exists
on Linux only. One `stat` a second costs nothing that can be measured.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

import trio

from takopi.core.errors import ConfigInvalid, Problem

T = TypeVar("T")
Fingerprint: TypeAlias = tuple[int, ...]


def fingerprint(path: Path) -> Fingerprint:
    """What changes when the file does, through links; empty while there is no file.

    Modes are in it, so that a `chmod` that mends a problem is seen.
    """
    try:
        seen = path.stat()
        folder = path.parent.stat()
    except OSError:
        return ()
    return (
        seen.st_dev,
        seen.st_ino,
        seen.st_size,
        seen.st_mtime_ns,
        seen.st_ctime_ns,
        folder.st_mode,
    )


async def watch(
    path: Path,
    load: Callable[[], T],
    *,
    current: T,
    on_change: Callable[[T], Awaitable[None]],
    on_problem: Callable[[tuple[Problem, ...]], Awaitable[None]],
    every_s: float = 1.0,
) -> None:
    """Watch until cancelled.

    `load` is called in a thread and raises `ConfigInvalid` when the file cannot be used; then
    `on_problem` gets the problems, once, and the old config stays. `on_change` gets a config that
    differs from the last good one, or that ends a problem that was reported.

    A file is read only after it has kept still for a whole interval, so that one which is still
    being written is not judged. The first look comes by itself: a change between the caller's own
    load and this call is not missed.
    """
    handled: Fingerprint | None = None
    reported: tuple[Problem, ...] = ()
    last = await _in_thread(lambda: fingerprint(path))
    while True:
        await trio.sleep(every_s)
        before, last = last, await _in_thread(lambda: fingerprint(path))
        if last != before or last == handled:
            continue
        outcome = await _in_thread(lambda: _outcome(load))
        if await _in_thread(lambda: fingerprint(path)) != last:
            continue
        handled = last
        if isinstance(outcome, ConfigInvalid):
            if outcome.problems != reported:
                reported = outcome.problems
                await on_problem(reported)
        elif outcome != current or reported:
            current, reported = outcome, ()
            await on_change(outcome)


def _outcome(load: Callable[[], T]) -> T | ConfigInvalid:
    try:
        return load()
    except ConfigInvalid as error:
        return error


async def _in_thread(read: Callable[[], T]) -> T:
    # Only reads: a disk that hangs must not keep the daemon from stopping.
    return await trio.to_thread.run_sync(read, abandon_on_cancel=True)
