"""A plan in the words of a terminal: a line for a memo or an action, and a summary of it all."""

from __future__ import annotations

from takopi.cli.errors import printable
from takopi.turns.plan import Action, Memo, Plan, amounts, subject

RULE = "-" * 68


def summary(plan: Plan) -> str:
    """A plan on a few lines: its memos, and how many actions of which kind."""
    lines = [f'▶ Reviewing Plan: "{printable(plan.title)}"', RULE, ""]
    if plan.memos:
        lines += [" memos.yaml:", *(f"  {memo_line(memo)}" for memo in plan.memos), ""]
    lines.append(" Action Plan:")
    lines += [f"  - {kind + ':':<7} {amount}" for kind, amount in amounts(plan)]
    return "\n".join([*lines, "", RULE])


def memo_line(memo: Memo) -> str:
    """What becomes of a memo, and why."""
    word = "ADD:" if memo.sign == "+" else "REMOVE:"
    why = f" # {memo.why}" if memo.why else ""
    return printable(f"[{memo.sign}] {word:<7} {memo.text}{why}")


def action_line(action: Action) -> str:
    """What an action does, and to what."""
    return printable(f"{action.kind + ':':<7} {subject(action)}")
