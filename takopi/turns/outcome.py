"""What came of each action of a plan: facts that the report tells and the next turn builds on."""

from __future__ import annotations

from typing import Literal

import msgspec

from takopi.turns.plan import Action

Status = Literal["SUCCESS", "FAILURE", "SKIPPED"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one action ended; `details` is markdown for the report."""

    status: Status
    reason: str = ""
    duration_s: float = 0.0
    details: str = ""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """One action with what came of it; `action` is what was executed, after the person's edits."""

    action: Action
    outcome: Outcome
    approved: bool = True
    modified: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether it was executed, and well."""
        return self.outcome.status == "SUCCESS"
