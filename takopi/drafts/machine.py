"""What becomes of a draft: pure steps from state to state, and what can be pressed in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from takopi.store.drafts import Draft, Job
from takopi.telegram.buttons import Codec

DraftVerb = Literal["run", "revert", "reset", "retry", "append"]
Verdict = Literal["yes", "decided", "outdated"]

MAX_TEXT_CHARS = 200_000
"""The longest prompt that is kept: many times what an engine reads at once."""


@dataclass(frozen=True, slots=True)
class DraftPress:
    """What is to be done with a draft, as it was at a step."""

    what: DraftVerb
    draft: int
    step: int


PRESS = Codec("dr", DraftPress)


@dataclass(frozen=True, slots=True)
class State:
    """A draft, and what waits in its scope in the order in which it came."""

    draft: Draft
    jobs: tuple[Job, ...] = ()

    @property
    def failed(self) -> Job | None:
        """The input that could not be taken in, where the queue stands still because of one."""
        head = self.jobs[0] if self.jobs else None
        return head if head is not None and head.state == "failed" else None


def with_version(draft: Draft, text: str) -> Draft:
    """The draft after an input."""
    return replace(draft, versions=(*draft.versions, text), step=draft.step + 1)


def reverted(draft: Draft) -> Draft | None:
    """The draft one version earlier; None past the first, where nothing is left of it."""
    if len(draft.versions) <= 1:
        return None
    return replace(draft, versions=draft.versions[:-1], step=draft.step + 1)


def appended(draft: Draft, text: str) -> str:
    """The next version where nobody put it together: the input below what there is."""
    return f"{draft.text}\n\n{text}" if draft.text else text


def buttons(state: State) -> tuple[DraftVerb, ...]:
    """Only what has an effect as it stands now."""
    if state.failed is not None:
        return ("retry", "append", "reset")
    match len(state.draft.versions):
        case 0:
            return ()
        case 1:
            return ("run", "reset")
        case _:
            return ("run", "revert", "reset")


def judge(state: State | None, press: DraftPress) -> Verdict:
    """Whether a press counts: once for each step of the draft that it was shown for."""
    if state is None or (press.draft, press.step) != (state.draft.id, state.draft.step):
        return "outdated"
    if any(_is_press(job) and job.new.step == press.step for job in state.jobs):
        return "decided"
    # Revert is not shown for the first version; whoever gets past it nevertheless, resets.
    past_first = press.what == "revert" and "run" in buttons(state)
    return "yes" if past_first or press.what in buttons(state) else "decided"


def waiting_inputs(jobs: Sequence[Job]) -> int:
    """How many messages have not been taken in."""
    return sum(not _is_press(job) for job in jobs)


def _is_press(job: Job) -> bool:
    return job.new.kind in {"run", "revert"}
