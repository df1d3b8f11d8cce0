"""What a person has decided of a plan: which memos and actions are checked, and what was changed.

Every step gives a new choice. Nothing here touches the plan, which stays as it was proposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import starmap

from takopi.turns.plan import Action, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The checked memos and actions by their place in the plan, and the actions as changed."""

    memos: frozenset[int] = frozenset()
    actions: frozenset[int] = frozenset()
    edits: Mapping[int, Action] = field(default_factory=dict[int, Action])


def everything(plan: Plan) -> Choice:
    """All of a plan, as it was proposed."""
    return Choice(
        memos=frozenset(range(len(plan.memos))), actions=frozenset(range(len(plan.actions)))
    )


def toggle_memo(choice: Choice, index: int) -> Choice:
    """Check a memo that was not checked, and the other way round."""
    return replace(choice, memos=choice.memos ^ {index})


def toggle_action(choice: Choice, index: int) -> Choice:
    """Check an action that was not checked, and the other way round."""
    return replace(choice, actions=choice.actions ^ {index})


def toggle_all(choice: Choice, plan: Plan) -> Choice:
    """Check everything if anything is not checked, else nothing."""
    full = everything(plan)
    if (choice.memos, choice.actions) == (full.memos, full.actions):
        return Choice(edits=choice.edits)
    return replace(full, edits=choice.edits)


def edit(choice: Choice, plan: Plan, *, index: int, action: Action) -> Choice:
    """Have another action carried out in place of one; the proposed one again is no change."""
    edits = {key: value for key, value in choice.edits.items() if key != index}
    if action != plan.actions[index]:
        edits[index] = action
    return replace(choice, edits=edits)


def final_actions(choice: Choice, plan: Plan) -> tuple[Action, ...]:
    """The actions of a plan with the person's changes."""
    return tuple(starmap(choice.edits.get, enumerate(plan.actions)))
