"""Prints by how many KiB this process grew, at its largest, for one reply of so many bytes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import trio

from takopi.core.errors import TakopiError
from tests.kit.memory import largest_bytes
from tests.mcp.rig import Way, open_servers, server_by


async def weigh(way: Way, size: int, folder: Path) -> int:
    with server_by(way) as server:
        async with open_servers(folder, {"t": server}) as servers:
            await servers.offer(None)
            await servers.call("t__much", {"size": 1000})
            before = largest_bytes() // 1024
            try:
                await servers.call("t__much", {"size": size})
            except TakopiError as error:
                print(error.what)
            assert await servers.call("t__add", {"a": 40, "b": 2}) == "42"
            return largest_bytes() // 1024 - before


if __name__ == "__main__":
    way, size, folder = sys.argv[1:]
    print(trio.run(weigh, cast("Way", way), int(size), Path(folder)))
