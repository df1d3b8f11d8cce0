"""A process that owns a child until it is killed: python owner.py MARK GRACE_S SCRIPT."""

from __future__ import annotations

import sys

import trio

from takopi.kit.proc import open_keeper
from tests.kit.processes import shell


async def main(mark: str, grace_s: str, script: str) -> None:
    async with (
        open_keeper(on_lost=lambda: None) as keeper,
        keeper.child(shell(script, mark), grace_s=float(grace_s)),
    ):
        print("started", flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
