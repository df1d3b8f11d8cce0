"""What a daemon holds after many runs, and what one enormous line costs it."""

from __future__ import annotations

import trio

from tests.bench.daemon import Daemon, open_daemon
from tests.bench.measure import Row, against_aim
from tests.bench.readings import forget_peak, peak_mib, rss_mib

RUNS = 100
FRIENDS = 10
"""Chats enough that no pace holds the runs up: each has a burst of its own."""

LIMITS = "[limits]\nmax_queued = 200\nuser_per_min = 600\n"
BIG_LINE = "big line 100MB"
SETTLE_S = 2.0


async def measure() -> list[Row]:
    async with open_daemon(config=LIMITS, friends=FRIENDS) as daemon:
        await daemon.rig.start()
        await trio.sleep(SETTLE_S)
        idle = rss_mib(daemon.pid)
        await _run_many(daemon)
        await trio.sleep(SETTLE_S)
        after = rss_mib(daemon.pid)
        await _run_many(daemon)
        await trio.sleep(SETTLE_S)
        later = rss_mib(daemon.pid)
        forget_peak(daemon.pid)
        await daemon.said(await daemon.rig.say(BIG_LINE), "done")
        peak = peak_mib(daemon.pid)
    return [
        against_aim(f"memory: RSS added by {RUNS} runs", after - idle, unit="Mi", aim=2),
        Row(
            f"memory: RSS added by {RUNS} more",
            later - after,
            "Mi",
            "those before",
            after - idle,
            "nothing leaks",
        ),
        against_aim("memory: RSS added by a line of 100 MB", peak - later, unit="Mi", aim=24),
    ]


async def _run_many(daemon: Daemon) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(RUNS):
            friend = daemon.friends[number % FRIENDS]
            prompt = await friend.send(friend.chat, f"say: run {number}")
            nursery.start_soon(daemon.said, prompt, "done")
            await trio.sleep(0.15)
