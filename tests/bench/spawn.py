"""What the keeper adds to starting a child, in time and memory, and how fast a cancel is."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from subprocess import PIPE

import trio

from takopi.kit.proc import Command, Keeper, open_keeper
from tests.bench.measure import Row, median
from tests.bench.readings import parent, pss_mib

ROUNDS = 60
CHILDREN = 20
SLEEPER = Command(["sleep", "300"], Path("/"), {"PATH": os.environ["PATH"]})


async def measure() -> list[Row]:
    async with open_keeper(on_lost=lambda: None) as keeper:
        async with keeper.child(SLEEPER, grace_s=1):
            pass
        ours, floor, cancel, reap = list[float](), list[float](), list[float](), list[float]()
        for _ in range(ROUNDS):
            await _bare(floor, reap)
            await _kept(keeper, ours, cancel)
        added_pss, process_pss = await _memory(keeper)
    return [
        Row(
            "spawn: child under the keeper",
            median(ours),
            "ms",
            "open_process",
            median(floor),
            "under 8 ms added",
        ),
        Row(
            "cancel: until no process is left",
            median(cancel),
            "ms",
            "terminate and wait",
            median(reap),
            "polite child",
        ),
        Row(
            "memory: added per child (PSS)",
            added_pss,
            "Mi",
            "the sleeping child itself",
            process_pss,
            "under 2 MiB",
        ),
    ]


async def _bare(started: list[float], ended: list[float]) -> None:
    began = time.perf_counter()
    process = await trio.lowlevel.open_process(
        list(SLEEPER.argv), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=dict(SLEEPER.env)
    )
    now = time.perf_counter()
    started.append((now - began) * 1000)
    process.terminate()
    await process.wait()
    ended.append((time.perf_counter() - now) * 1000)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            await stream.aclose()


async def _kept(keeper: Keeper, started: list[float], ended: list[float]) -> None:
    began = time.perf_counter()
    async with keeper.child(SLEEPER, grace_s=1):
        now = time.perf_counter()
        started.append((now - began) * 1000)
    ended.append((time.perf_counter() - now) * 1000)


async def _memory(keeper: Keeper) -> tuple[float, float]:
    """Mebibytes that a warden adds, and that the child itself takes, with many at once."""
    assert keeper.pid is not None
    alone = pss_mib([keeper.pid])
    pids: list[int] = []

    async with contextlib.AsyncExitStack() as stack:
        for _ in range(CHILDREN):
            child = await stack.enter_async_context(keeper.child(SLEEPER, grace_s=1))
            pids.append(child.pid)
        wardens = [parent(pid) for pid in pids]
        added = pss_mib(wardens) + pss_mib([keeper.pid]) - alone
        children = pss_mib(pids)
    return added / CHILDREN, children / CHILDREN
