from __future__ import annotations

import pytest

from takopi.turns.machine import (
    Choice,
    edit,
    everything,
    final_actions,
    toggle_action,
    toggle_all,
    toggle_memo,
)
from takopi.turns.plan import Execute, Memo, Plan, Read

PLAN = Plan(
    title="T",
    rationale="",
    memos=(Memo("+", "m"),),
    actions=(Read(path="a"), Execute(command="x")),
)
ALL = everything(PLAN)


@pytest.mark.parametrize(
    "choice", [Choice(), toggle_memo(ALL, 0), toggle_action(ALL, 0), toggle_action(ALL, 1)]
)
def test_toggle_all_checks_everything_while_anything_is_not_checked(choice: Choice) -> None:
    assert toggle_all(choice, PLAN) == ALL


def test_toggle_all_unchecks_everything_when_all_is_checked() -> None:
    assert toggle_all(ALL, PLAN) == Choice()


def test_toggling_twice_changes_nothing() -> None:
    assert toggle_memo(toggle_memo(ALL, 0), 0) == ALL
    assert toggle_action(toggle_action(ALL, 1), 1) == ALL


def test_change_is_kept_by_toggling_and_gone_when_it_is_taken_back() -> None:
    changed = edit(ALL, PLAN, index=1, action=Execute(command="y"))
    for one in (changed, toggle_all(changed, PLAN), toggle_action(changed, 1)):
        assert final_actions(one, PLAN) == (Read(path="a"), Execute(command="y"))
    assert edit(changed, PLAN, index=1, action=Execute(command="x")) == ALL
