"""What of the daemon's environment an engine gets to see: everything but what is takopi's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

OURS = ("TAKOPI_", "WATCHDOG_", "LISTEN_")


def child_environ(
    environ: Mapping[str, str], *, secrets: tuple[str, ...], cwd: Path, extra: Mapping[str, str]
) -> dict[str, str]:
    """The child's environment: ours, less our settings, systemd's channel and every secret.

    `extra` is what the engine's table adds; it has the last word, but not over the folder.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(OURS)
        and name != "NOTIFY_SOCKET"
        and not (name == "VIRTUAL_ENV" and value == sys.prefix)
        and not any(secret and secret in value for secret in secrets)
    }
    # Some programs believe PWD more than the folder they are in.
    return {**kept, **extra, "PWD": str(cwd)}
