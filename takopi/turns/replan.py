"""What an agent is told of a plan that failed its checks, so that it can correct it by itself."""

from __future__ import annotations

from collections.abc import Iterable

from takopi.turns.layout import Turn
from takopi.turns.render import fence

_INTRO = (
    "The previous plan failed validation. Please review the errors and the original plan, "
    "then generate a corrected version."
)


def feedback(errors: Iterable[str], plan: str) -> str:
    """The message for the next turn: every error, and the plan word for word."""
    listed = "\n".join(f"- {error}" for error in errors)
    quoted = fence(plan, "markdown")
    if quoted.startswith("```markdown"):
        quoted = f"`{quoted}`"
    return f"{_INTRO}\n\n## Validation Errors:\n{listed}\n\n## Original Faulty Plan:\n{quoted}\n"


def replans_before(turn: Turn) -> int:
    """How many plans in a row have failed before this turn's."""
    count = 0
    meta = turn.meta()
    while meta.replan_of is not None:
        count += 1
        meta = turn.session.turn(meta.replan_of).meta()
    return count
