"""The `takopi` command: answers `--version` at once and loads the rest only when it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial

from takopi.kit.lean import load_without


def main() -> None:
    """Entry point of the console script."""
    if sys.argv[1:] == ["--version"]:
        from takopi import __version__

        sys.stdout.write(f"takopi {__version__}\n")
        return
    load_structlog()
    # A shell that completes a command line calls takopi without one.
    if "_TAKOPI_COMPLETE" not in os.environ and (daemon := _plain_run(sys.argv[1:])) is not None:
        sys.exit(daemon())
    from takopi.cli.app import run

    sys.exit(run(sys.argv[1:]))


def _plain_run(args: list[str]) -> Callable[[], int] | None:
    """The daemon without Typer, which would stay in its memory; None for any other command."""
    verbose, debug = not {"-v", "--verbose"}.isdisjoint(args), "--debug" in args
    named = [arg for arg in args if arg not in {"-v", "--verbose", "--debug"}]
    if named:
        from takopi.cli.names import known_names

        # `takopi demo` is a command, though there is an engine of that name.
        if len(named) > 1 or named[0] == "demo" or named[0] not in known_names().engines:
            return None
    from takopi.cli.errors import ending
    from takopi.cli.run import run

    engine = named[0] if named else None
    return partial(ending, partial(run, engine=engine, verbose=verbose, debug=debug), debug=debug)


def load_structlog() -> None:
    """Without rich, for tracebacks that takopi never prints, and asyncio, for loggers to await.

    That would be 8 MiB and a tenth of the start, for as long as the daemon runs.
    """
    load_without("structlog", refused=["rich"], on_demand=["asyncio"])
