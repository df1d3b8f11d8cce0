"""Reads the lines of a shell script; prints them, and by how much this process grew for it."""

from __future__ import annotations

import json
import sys

import trio

from takopi.kit.exchange import exchange, feed_bytes
from takopi.kit.lines import LineReader, Oversize
from takopi.kit.proc import open_keeper
from tests.kit.memory import forget_largest, largest_bytes
from tests.kit.processes import new_mark, shell

LIMIT_BYTES = 10 << 20


async def read(script: str) -> dict[str, object]:
    lines: list[str | int] = []

    async def collect(stdout: trio.abc.ReceiveStream) -> None:
        reader = LineReader(stdout, max_bytes=LIMIT_BYTES)
        while batch := await reader.receive():
            lines.extend(
                line.size if isinstance(line, Oversize) else line.decode() for line in batch
            )

    async with open_keeper(on_lost=lambda: None) as keeper:
        before = forget_largest()
        ending = await exchange(
            keeper, shell(script, new_mark()), feed=feed_bytes(b""), read=collect, grace_s=1
        )
        grown = largest_bytes() - before
    return {"code": ending.code, "lines": lines, "grown_bytes": grown}


if __name__ == "__main__":
    print(json.dumps(trio.run(read, sys.argv[1])))
