"""How much is too much: every bound of the daemon, with its default and its own bounds."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

DAY_S = 24 * 60 * 60
WEEK_S = 7 * DAY_S


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[limits]` table."""

    max_runs: Annotated[int, Meta(ge=1, le=64)] = 4
    """Runs at the same time."""
    max_queued: Annotated[int, Meta(ge=0, le=1000)] = 20
    """Runs that may wait before a new one is refused."""
    user_per_min: Annotated[int, Meta(ge=1, le=600)] = 30
    """Messages of one person in a minute before they are refused."""
    run_s: Annotated[float, Meta(ge=0, le=WEEK_S)] = 0
    """Wall-clock cap of a run; 0 means none."""
    idle_s: Annotated[float, Meta(gt=0, le=DAY_S)] = 900
    """Silence of an engine before the chat is told, once. It never ends the run."""
    ask_s: Annotated[float, Meta(gt=0, le=WEEK_S)] = 3600
    """How long an engine waits for a person to decide before it is denied."""
    grace_s: Annotated[float, Meta(ge=0, le=60)] = 2
    """Time for a process to end by itself before it is killed."""
    line_bytes: Annotated[int, Meta(ge=64 * 1024, le=1024 * 1024 * 1024)] = 10 * 1024 * 1024
    """Longest line of an engine that is read; a longer one is skipped."""
    stale_s: Annotated[float, Meta(ge=0, le=DAY_S)] = 600
    """Age from which a message that waited for the daemon is asked about instead of run."""
    gather_s: Annotated[float, Meta(ge=0, le=10)] = 1
    """How long the parts of one message, split by the chat, are waited for."""
    max_parts: Annotated[int, Meta(ge=1, le=20)] = 5
    """Messages of one long answer before the whole also goes as a file."""
    drain_s: Annotated[float, Meta(ge=0, le=600)] = 20
    """Time for the runs to end when the daemon is stopped."""
    keep_days: Annotated[int, Meta(ge=1, le=3650)] = 90
    """Days after which finished rows leave the database."""
