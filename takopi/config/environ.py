"""What of the daemon's environment a child gets to see: everything but what is takopi's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

OURS = ("TAKOPI_", "WATCHDOG_", "LISTEN_")
# What claude tells its own children: a takopi started from a claude session must not pass on that
# session's identity, its socket or its effort.
PARENT_SESSION = frozenset({
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_PID",
})


def child_environ(
    environ: Mapping[str, str], *, secrets: tuple[str, ...], cwd: Path, extra: Mapping[str, str]
) -> dict[str, str]:
    """The child's environment: ours, less our settings, systemd's channel and every secret.

    Nor does a child hear of the session takopi was started from. `extra` is what the engine's
    table adds; it has the last word, but not over the folder.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(OURS)
        and name != "NOTIFY_SOCKET"
        and name not in PARENT_SESSION
        and not (name == "VIRTUAL_ENV" and value == sys.prefix)
        and not any(secret and secret in value for secret in secrets)
    }
    # Some programs believe PWD more than the folder they are in.
    return {**kept, **extra, "PWD": str(cwd)}
