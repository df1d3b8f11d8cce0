"""Writes report.md: what was planned, what a person allowed, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import starmap

from takopi.turns.outcome import Done
from takopi.turns.plan import Memo, Plan, subject
from takopi.turns.render import action_keys, fence, render_memo


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a report needs to know beside the plan."""

    plan_path: str
    started: str
    ended: str
    user_request: str


def report(
    plan: Plan,
    facts: Facts,
    *,
    memos: Iterable[Memo],
    done: tuple[Done, ...],
    gave_up: bool = False,
) -> str:
    """The report of a plan that was carried out, in whole or in part; one `gave_up` on failed."""
    failed = [one for one in done if one.outcome.status == "FAILURE"]
    succeeded = [one for one in done if one.succeeded]
    approved = [one for one in done if one.approved]
    status = "FAILURE 🔴" if failed or gave_up else "SUCCESS 🟢"
    counts = (
        f"- **Actions:** {len(done)} Total / {len(approved)} Approved / "
        f"{sum(one.outcome.status == 'SKIPPED' for one in done)} Skipped\n"
        f"- **Outcomes:** {len(succeeded)} Succeeded / {len(failed)} Failed\n"
    )
    changes = "\n".join(f"- `{render_memo(memo)}`" for memo in memos) or "*(none)*"
    entries = list(starmap(_entry, enumerate(done, 1)))
    return (
        "\n\n".join([
            _head(plan.title, status, facts) + counts + _request(facts),
            f"## 1. Rationale\n{fence(plan.rationale)}",
            f"## 2. Execution Summary\n\n### Applied State Changes\n{changes}",
            "\n\n".join(["### Action Log", *entries]),
        ])
        + "\n"
    )


def skipped_report(plan: Plan, facts: Facts, *, message: str) -> str:
    """The report of a plan that a person did not want."""
    count = len(plan.actions)
    head = _head(plan.title, "SKIPPED 🟡", facts)
    counts = (
        f"- **Actions:** {count} Total / 0 Approved / {count} Skipped\n"
        "- **Outcomes:** 0 Succeeded / 0 Failed\n"
    )
    said = (
        f"\nThe plan was skipped. The person said:\n\n{fence(message)}\n"
        if message
        else ("\nThe plan was skipped.\n")
    )
    return f"{head}{counts}{_request(facts)}\n{said}"


def failure_report(title: str, facts: Facts, *, errors: Iterable[str]) -> str:
    """The report of a plan that failed its checks, and of which nothing was executed."""
    listed = "\n".join(f"- {error}" for error in errors)
    head = _head(title, "VALIDATION FAILED 🔴", facts)
    return f"{head}{_request(facts)}\n\n## Validation Errors\n{listed}\n"


def _head(title: str, status: str, facts: Facts) -> str:
    return (
        f"# Execution Report: {title}\n"
        f"- **Overall Status:** {status}\n"
        f"- **Original Plan:** [{facts.plan_path}](/{facts.plan_path})\n"
        f"- **Start Time:** {facts.started}\n"
        f"- **End Time:** {facts.ended}\n"
    )


def _request(facts: Facts) -> str:
    request = " ".join(facts.user_request.split())
    return f"- **User Prompt:** {request[:500] or '(none)'}"


def _entry(number: int, one: Done) -> str:
    outcome = one.outcome
    tag = " *modified" if one.modified else ""
    reason = f" ({outcome.reason})" if outcome.reason else ""
    execution = "Approved" if one.approved else "Not approved"
    lines = (
        f"#### {number}. `{one.action.kind}`: {subject(one.action)}{tag}\n"
        f"- **Status:** {outcome.status}{reason}\n"
        f"- **Execution:** {execution}{', changed by the person' if one.modified else ''}\n"
        f"- **Duration:** {outcome.duration_s:.1f} s\n"
        f"{action_keys(one.action)}"
    )
    return f"{lines}\n{outcome.details}".rstrip()
