"""Notes the start and the end of every action before anything depends on it.

After a crash it says what ran, what may have run, and what did not.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import msgspec

from takopi.kit.atomic import sync_folder
from takopi.turns.layout import Turn
from takopi.turns.outcome import Outcome

NAME = "execution.jsonl"


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: which plan is carried out, or that an action has begun or ended."""

    plan: str = ""
    approved: tuple[int, ...] = ()
    started: str = ""
    begin: int | None = None
    end: int | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """What the journal of an interrupted turn says."""

    plan: str
    approved: frozenset[int]
    started: str
    ended: dict[int, Outcome] = field(default_factory=dict[int, Outcome])
    unsure: int | None = None
    """The action that had begun and may have run."""


def append(turn: Turn, line: Line) -> None:
    """Add a line, and return when it is on the disk."""
    path = turn.path(NAME)
    fresh = not path.exists()
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    if fresh:
        sync_folder(turn.folder)


def read_past(turn: Turn) -> Past | None:
    """What has been carried out of a turn; None if nothing was begun."""
    if not turn.has(NAME):
        return None
    past: Past | None = None
    begun: int | None = None
    for raw in turn.path(NAME).read_bytes().splitlines():
        try:
            line = msgspec.json.decode(raw, type=Line)
        except (msgspec.MsgspecError, UnicodeError):
            continue  # only the last line can be torn, and it says nothing then
        if line.plan:
            kept = past.ended if past else {}
            past = Past(line.plan, frozenset(line.approved), line.started, kept)
            begun = None
        elif line.begin is not None:
            begun = line.begin
        elif past and line.end is not None and line.outcome is not None:
            past.ended[line.end] = line.outcome
            begun = None
    if past is None:
        return None
    return Past(past.plan, past.approved, past.started, past.ended, begun)
