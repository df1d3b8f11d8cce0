"""Carries out the plan of a turn, or goes on with it, and dies by kill -9 after one step.

python -m tests.turns.crash TURN_FOLDER STEP
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import trio

from takopi.kit.proc import open_keeper
from takopi.turns.actions import Bench
from takopi.turns.layout import Turn
from takopi.turns.machine import everything
from takopi.turns.service import Interrupted, Proposal, Rules, check, execute, recover


async def main(turn: Turn, fatal: str) -> None:
    def die(step: str) -> None:
        if step == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    found = check(turn, Rules())
    async with open_keeper(on_lost=lambda: None) as keeper:
        bench = Bench(root=turn.root, keeper=keeper, environ={"PATH": "/usr/bin:/bin"})
        match found:
            case Proposal():
                await execute(found, bench, choice=everything(found.plan), at=die)
            case Interrupted():
                await recover(found, bench, go_on=True, at=die)
            case _:
                raise AssertionError(found)


if __name__ == "__main__":
    trio.run(main, Turn(Path(sys.argv[1])), sys.argv[2])
