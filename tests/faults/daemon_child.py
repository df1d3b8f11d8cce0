"""takopi as `takopi -v` starts it, with what only a fault wants: a set moment of death, haste."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import trio

from takopi.app.daemon import run_daemon
from takopi.cli.errors import ending
from takopi.cli.run import prepare
from takopi.telegram.times import Times

QUICK = Times(poll_s=2, answer_s=1.0, conflict_s=0.5, sign_s=0.5, request_s=3.0)
"""A server that is silent is given up after seconds: the short forms wait for no minute."""


def dying(commit: int) -> Callable[[], None]:
    """End this process as kill -9 does, right after so many commits."""
    commits = count(1)

    def on_commit() -> None:
        if next(commits) == commit:
            os.kill(os.getpid(), signal.SIGKILL)

    return on_commit


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--die-at-commit", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    launch = prepare(engine=None, verbose=True, debug=False)
    launch = replace(
        launch,
        on_commit=dying(chosen.die_at_commit) if chosen.die_at_commit else None,
        times=QUICK if chosen.quick else None,
    )
    return ending(lambda: trio.run(run_daemon, launch), debug=False)


if __name__ == "__main__":
    sys.exit(main())
