from __future__ import annotations

from takopi.turns.outcome import Done, Outcome
from takopi.turns.plan import Create, Memo, Plan, Read
from takopi.turns.report import Facts, failure_report, report

FACTS = Facts(
    plan_path=".teddy/s/01/plan.md", started="10:00", ended="10:01", user_request="Hello\nthere"
)
HEAD = """\
# Execution Report: T
- **Overall Status:** {status}
- **Original Plan:** [.teddy/s/01/plan.md](/.teddy/s/01/plan.md)
- **Start Time:** 10:00
- **End Time:** 10:01
"""


def test_report_reads_as_specified() -> None:
    plan = Plan(title="T", rationale="Why.", actions=())
    done = (
        Done(
            action=Create(path="a.txt", content="a\n", description="Make it."),
            outcome=Outcome(status="SUCCESS", duration_s=0.25, details="It was made."),
            modified=True,
        ),
        Done(
            action=Read(path="b.txt"),
            outcome=Outcome(status="SKIPPED", reason="not approved"),
            approved=False,
        ),
    )
    memos = [Memo("+", "Use pnpm.", "A convention.")]
    assert (
        report(plan, FACTS, memos=memos, done=done)
        == HEAD.format(status="SUCCESS 🟢")
        + """\
- **Actions:** 2 Total / 1 Approved / 1 Skipped
- **Outcomes:** 1 Succeeded / 0 Failed
- **User Prompt:** Hello there

## 1. Rationale
```
Why.
```

## 2. Execution Summary

### Applied State Changes
- `[+] Use pnpm. # A convention.`

### Action Log

#### 1. `CREATE`: a.txt *modified
- **Status:** SUCCESS
- **Execution:** Approved, changed by the person
- **Duration:** 0.2 s
- **File Path:** [a.txt](/a.txt)
- **Description:** Make it.

It was made.

#### 2. `READ`: b.txt
- **Status:** SKIPPED (not approved)
- **Execution:** Not approved
- **Duration:** 0.0 s
- **Resource:** [b.txt](/b.txt)
"""
    )


def test_plan_that_failed_its_checks_is_reported_with_every_error() -> None:
    said = failure_report("T", FACTS, errors=["one", "two"])
    assert said == HEAD.format(status="VALIDATION FAILED 🔴") + (
        "- **User Prompt:** Hello there\n\n## Validation Errors\n- one\n- two\n"
    )
