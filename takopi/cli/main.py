"""The `takopi` command: answers `--version` at once and loads the rest only when it is needed."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script."""
    if sys.argv[1:] == ["--version"]:
        from takopi import __version__

        sys.stdout.write(f"takopi {__version__}\n")
        return
    from takopi.cli.app import run

    sys.exit(run(sys.argv[1:]))
