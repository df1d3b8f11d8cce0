"""What the buttons of runs, asks and waiting messages carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from takopi.core.ids import InboxId, RunId
from takopi.core.outgoing import Button
from takopi.telegram.buttons import Codec

RunVerb = Literal["cancel", "retry", "resume", "afresh", "drop", "diff", "show"]
LABELS: dict[RunVerb, str] = {
    "cancel": "Cancel",
    "retry": "Retry",
    "resume": "Resume",
    "afresh": "Start afresh",
    "drop": "Drop",
    "diff": "Diff",
    "show": "Show",
}


@dataclass(frozen=True, slots=True)
class RunPress:
    """Something to be done with a run."""

    what: RunVerb
    run: int


@dataclass(frozen=True, slots=True)
class AskPress:
    """A decision on the `ask`-th ask of a run: a verdict, or the number of a choice."""

    run: int
    ask: int
    question: int
    what: str


@dataclass(frozen=True, slots=True)
class InboxPress:
    """What is to become of a message that waited too long."""

    what: Literal["run", "drop"]
    inbox: int


RUN = Codec("rn", RunPress)
ASK = Codec("ak", AskPress)
INBOX = Codec("in", InboxPress)


def run_button(what: RunVerb, run: RunId, label: str = "") -> Button:
    """A button that does something with a run."""
    return Button(label or LABELS[what], RUN.encode(RunPress(what, run)))


def inbox_button(what: Literal["run", "drop"], inbox_id: InboxId) -> Button:
    """A button that decides on a waiting message."""
    return Button("Run" if what == "run" else "Drop", INBOX.encode(InboxPress(what, inbox_id)))
