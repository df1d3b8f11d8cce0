"""What a daemon holds after many runs, and what one enormous line costs it."""

from __future__ import annotations

import trio

from tests.bench import big_files
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
        *_of_runs(idle, after, later, peak),
        *(await _of_files()),
    ]


def _of_runs(idle: float, after: float, later: float, peak: float) -> list[Row]:
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


async def _of_files() -> list[Row]:
    async with open_daemon(config=big_files.CONFIG) as daemon:
        rig = daemon.rig
        await rig.start()
        await big_files.warm_up(rig)
        one = await big_files.added_by_taking(rig)
        album = await big_files.added_by_taking(rig, big_files.ALBUM)
        sent = await big_files.added_by_sending(rig)
        page = await big_files.added_by_page_file(rig)
        upload = await big_files.added_by_page_upload(rig)
    return [
        against_aim("memory: RSS added by a file of 20 MB that comes", one, unit="Mi", aim=15),
        against_aim("memory: RSS added by an album of 200 MB", album, unit="Mi", aim=15),
        against_aim("memory: RSS added by a file of 50 MB that goes", sent, unit="Mi", aim=15),
        against_aim("memory: RSS added by the same on the page", page, unit="Mi", aim=15),
        against_aim("memory: RSS added by an upload of 20 MB", upload, unit="Mi", aim=15),
    ]


async def _run_many(daemon: Daemon) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(RUNS):
            friend = daemon.friends[number % FRIENDS]
            prompt = await friend.send(friend.chat, f"say: run {number}")
            nursery.start_soon(daemon.said, prompt, "done")
            await trio.sleep(0.15)
