"""The systemd unit of takopi: what stands in it, and where it lies."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path

from takopi.config.limits import Limits
from takopi.config.paths import Home
from takopi.core.errors import Refused

WATCHDOG_S = 180
STOP_SLACK_S = 6
LEAST_SLACK_S = 10

_UNIT = """\
[Unit]
Description=takopi, your coding agents in a chat

[Service]
Type=notify
ExecStart={command}
WorkingDirectory=~
{home}
Environment={path}
SyslogIdentifier=takopi
UMask=0077
WatchdogSec={watchdog_s}
TimeoutStopSec={stop_s}
KillMode=mixed
OOMPolicy=continue
Restart=always
RestartSec=5
RestartPreventExitStatus=78

[Install]
WantedBy=default.target
"""


def unit_text(home: Home, *, path: str, limits: Limits) -> str:
    """The whole unit. It holds no secret: the token stays in the config."""
    if set(sys.executable) & set("\\\"'"):
        raise Refused(
            f"systemd starts no program with quotes or backslashes in its path: {sys.executable}",
            way_out="install takopi in a folder without them",
        )
    # After the colon nothing is replaced: a `$` in the path stays one.
    # With the fault handler a daemon that the watchdog ends logs where it was stuck.
    python = [_quoted(f":{sys.executable}"), "-X", "faulthandler"]
    command = [*python, "-m", "takopi", "--verbose"]
    return _UNIT.format(
        command=" ".join(command),
        home=home_line(home),
        path=_quoted(f"PATH={_absolute(path)}"),
        watchdog_s=WATCHDOG_S,
        stop_s=_stop_s(limits),
    )


def _stop_s(limits: Limits) -> int:
    """How long a stop may take before systemd kills.

    After the drain the runs are ended, then what the MCP servers have left: `grace_s` for each.
    """
    slack_s = max(2 * limits.grace_s + STOP_SLACK_S, LEAST_SLACK_S)
    return math.ceil(limits.drain_s + slack_s)


def unit_file(environ: Mapping[str, str]) -> Path:
    """Where systemd looks for the units of a person."""
    config = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(config) if config.startswith("/") else Path("~/.config").expanduser()
    return folder / "systemd/user/takopi.service"


def home_line(home: Home) -> str:
    """The line of a unit that names the home."""
    return f"Environment={_quoted(f'TAKOPI_HOME={home.folder}')}"


def home_of(unit: str) -> str | None:
    """The line of a unit that names its home; None if there is none."""
    for line in unit.splitlines():
        if line.startswith('Environment="TAKOPI_HOME='):
            return line
    return None


def _quoted(text: str) -> str:
    """One word of a unit, in which `%`, quotes and backslashes are only themselves."""
    if not text.isprintable():
        raise Refused(
            f"systemd cannot be told of {text!r}",
            way_out="use a folder whose name has no line breaks and is UTF-8",
        )
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _absolute(path: str) -> str:
    """The folders of a PATH once each; relative ones mean nothing to a service."""
    return ":".join(dict.fromkeys(place for place in path.split(":") if place.startswith("/")))
