"""How long the daemon takes to listen, and what it holds while nothing happens."""

from __future__ import annotations

import subprocess
import sys
import time

import trio

from tests.bench.daemon import Daemon, open_daemon
from tests.bench.measure import Row, median
from tests.bench.readings import rss_mib

ROUNDS = 7
SETTLE_S = 1.0
LISTENS_MS = 500.0
IDLE_MIB = 45.0
BARE = "import trio, httpx2"


async def measure(history_rows: int) -> list[Row]:
    plain: list[float] = []
    long: list[float] = []
    floor: list[float] = []
    async with open_daemon() as new, open_daemon(history_rows=history_rows) as old:
        for _ in range(ROUNDS):
            plain.append(await _listens_ms(new))
            long.append(await _listens_ms(old))
            floor.append(_bare_ms())
        await new.rig.start()
        await trio.sleep(SETTLE_S)
        idle = rss_mib(new.pid)
    return [
        Row(
            "daemon: exec to first getUpdates",
            median(plain),
            "ms",
            f"python -c '{BARE}'",
            median(floor),
            f"at most {LISTENS_MS:g} ms",
            most=LISTENS_MS,
        ),
        Row(
            f"  … with {history_rows} rows of history",
            median(long),
            "ms",
            "with none",
            median(plain),
            "no growth",
        ),
        Row(
            "daemon: idle RSS",
            idle,
            "Mi",
            f"python -c '{BARE}'",
            _bare_rss_mib(),
            f"at most {IDLE_MIB:g} MiB",
            most=IDLE_MIB,
        ),
    ]


async def _listens_ms(daemon: Daemon) -> float:
    api = daemon.rig.api
    known, began = len(api.requests), trio.current_time()
    await daemon.rig.start()
    poll = next(r for r in api.requests[known:] if r.method == "getUpdates")
    await daemon.rig.stop()
    return (poll.at_s - began) * 1000


def _bare_ms() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", BARE], check=True)
    return (time.perf_counter() - began) * 1000


def _bare_rss_mib() -> float:
    program = [sys.executable, "-c", f"{BARE}, sys; sys.stdin.read()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        time.sleep(SETTLE_S)
        held = rss_mib(process.pid)
        process.stdin.close()
    return held
