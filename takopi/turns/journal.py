"""Notes what was approved, and how each action began and ended, before anything depends on it.

After a crash it says what ran, what may have run, and what did not. It holds the plan as it was
approved, so that a plan.md which changes later changes nothing of what is under way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from takopi.core.errors import Refused
from takopi.kit.atomic import sync_folder
from takopi.turns.grammar import Malformed, parse
from takopi.turns.layout import Turn
from takopi.turns.machine import Choice
from takopi.turns.outcome import Outcome
from takopi.turns.plan import Action, Plan
from takopi.turns.render import render

NAME = "execution.jsonl"


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: what is carried out, that its memos are written, that an action began or ended."""

    plan: str = ""
    memos: tuple[int, ...] = ()
    approved: tuple[int, ...] = ()
    edits: dict[int, str] = {}
    started: str = ""
    remembered: bool = False
    begin: int | None = None
    end: int | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What has been approved of a turn, and how far it came."""

    plan: Plan
    choice: Choice
    started: str
    remembered: bool = False
    ended: Mapping[int, Outcome] = field(default_factory=dict[int, Outcome])
    unsure: int | None = None
    """The action that had begun and may have run."""


def opening(plan: str, choice: Choice, *, started: str) -> Line:
    """The first line: the text of the plan and what was chosen of it."""
    return Line(
        plan=plan,
        memos=tuple(sorted(choice.memos)),
        approved=tuple(sorted(choice.actions)),
        edits={index: _written(action) for index, action in choice.edits.items()},
        started=started,
    )


def append(turn: Turn, line: Line) -> None:
    """Add a line, and return when it is on the disk."""
    path = turn.path(NAME)
    fresh = not path.exists()
    with path.open("a+b") as file:
        # What a crash has torn must not swallow the line after it.
        end = file.seek(0, os.SEEK_END)
        torn = end and os.pread(file.fileno(), 1, end - 1) != b"\n"
        file.write((b"\n" if torn else b"") + msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    if fresh:
        sync_folder(turn.folder)


def read_past(turn: Turn) -> Past | None:
    """What has been carried out of a turn; None if nothing was begun, `Refused` if none can say."""
    if not turn.has(NAME):
        return None
    past: Past | None = None
    ended: dict[int, Outcome] = {}
    begun: int | None = None
    remembered = False
    for raw in turn.path(NAME).read_bytes().splitlines():
        try:
            line = msgspec.json.decode(raw, type=Line)
        except (msgspec.MsgspecError, UnicodeError):
            continue  # a torn line was the last before a crash: nothing came of it
        if line.plan:
            past = past or _opened(line)
        elif line.begin is not None:
            begun = line.begin
        elif line.end is not None and line.outcome is not None:
            ended[line.end] = line.outcome
            begun = None
        remembered = remembered or line.remembered
    if past is None:
        if remembered or ended or begun is not None:
            raise Refused(
                f"{turn.relative(NAME)} is damaged: it does not say what was approved",
                way_out="look at what was done, then remove that file to decide on the plan anew",
            )
        return None
    return Past(
        plan=past.plan,
        choice=past.choice,
        started=past.started,
        remembered=remembered,
        ended=ended,
        unsure=begun,
    )


def can_be_kept(action: Action) -> bool:
    """Whether an action that a person has changed reads back as the same."""
    return _read(_written(action)) == action


def _opened(line: Line) -> Past | None:
    plan = parse(line.plan)
    if isinstance(plan, Malformed):
        return None
    edits = {index: action for index, text in line.edits.items() if (action := _read(text))}
    choice = Choice(memos=frozenset(line.memos), actions=frozenset(line.approved), edits=edits)
    return Past(plan=plan, choice=choice, started=line.started)


def _written(action: Action) -> str:
    return render(Plan(title="Changed", rationale="By the person.", actions=(action,)))


def _read(text: str) -> Action | None:
    plan = parse(text)
    if isinstance(plan, Malformed) or len(plan.actions) != 1:
        return None
    return plan.actions[0]
