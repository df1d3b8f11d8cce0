"""The checklist under Textual's pilot: its keys, its tree, and terminals of any size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from takopi.cli.review_tui import HELP, PlanTree
from takopi.turns.machine import Choice
from takopi.turns.plan import (
    Execute,
)
from tests.turns.checklist import (
    ALL,
    PLAN,
    Drive,
    Script,
    choose,
    tree,
    until,
    until_closed,
    until_words,
    with_actions,
    words,
)


def keys(*names: str) -> Script:
    async def press(pilot: Drive) -> None:
        await pilot.press(*names)

    return press


def test_everything_is_shown_and_checked_at_first(root: Path) -> None:
    async def script(pilot: Drive) -> None:
        assert tree(pilot) == [
            "- Memos",
            "[✓] [+] ADD:    Use core.py. # Establish.",
            "- Action Plan",
            "[✓] CREATE: src/new.py",
            "[✓] EDIT:   old.py",
            "[✓] EXECUTE: poetry lock",
        ]
        assert words(pilot) == f"{HELP}\n4 of 4 checked, [q] to go back"
        await pilot.press("s")

    assert choose(root, PLAN, script) == ALL
    assert HELP == (
        "Use [↑/↓] to navigate, [enter] to toggle, [a] to toggle all, [p] to preview details, "
        "[s] to confirm."
    )


@pytest.mark.parametrize("key", ["space", "enter"])
def test_key_takes_a_check_away_and_puts_it_back(root: Path, key: str) -> None:
    async def script(pilot: Drive) -> None:
        await pilot.press(key, "down", "down", key, "down", key, key)
        assert tree(pilot)[1:] == [
            "[ ] [+] ADD:    Use core.py. # Establish.",
            "- Action Plan",
            "[ ] CREATE: src/new.py",
            "[✓] EDIT:   old.py",
            "[✓] EXECUTE: poetry lock",
        ]
        await pilot.press("s")

    assert choose(root, PLAN, script) == Choice(actions=frozenset({1, 2}))


def test_key_on_a_heading_changes_nothing(root: Path) -> None:
    async def script(pilot: Drive) -> None:
        await pilot.press("down", "space", "down", "up", "enter", "p")
        branches = pilot.app.query_one(PlanTree).root.children
        assert all(branch.is_expanded for branch in branches)
        await pilot.press("s")

    assert choose(root, PLAN, script) == ALL


@pytest.mark.parametrize(
    ("pressed", "expected"),
    [
        (("a", "space"), Choice(memos=frozenset({0}))),
        (("a", "a"), ALL),
        (("space", "a"), ALL),
        (("a", "down", "down", "space", "a"), ALL),
    ],
)
def test_toggle_all_checks_all_while_one_is_not_and_else_none(
    root: Path, pressed: tuple[str, ...], expected: Choice
) -> None:
    assert choose(root, PLAN, keys(*pressed, "s")) == expected


def test_confirming_with_nothing_checked_says_so_and_stays(root: Path) -> None:
    async def script(pilot: Drive) -> None:
        await pilot.press("a", "s")
        await until(pilot, lambda: bool(list(pilot.app.screen.query("Toast"))))
        await pilot.press("a", "s")

    assert choose(root, PLAN, script) == ALL


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
def test_going_back_chooses_nothing(root: Path, key: str) -> None:
    assert choose(root, PLAN, keys("space", key)) is None


def test_keys_of_the_list_do_nothing_behind_a_dialog(root: Path) -> None:
    async def script(pilot: Drive) -> None:
        await pilot.press("p")
        await until_words(pilot, "(c)lose \u203a")
        await pilot.press("s", "a", "space", "p")
        assert len(pilot.app.screen_stack) == 2
        await pilot.press("c")
        await until_closed(pilot)
        await pilot.press("s")

    assert choose(root, PLAN, script) == ALL


def test_words_of_a_plan_are_shown_literally(root: Path) -> None:
    plan = with_actions(Execute(command="echo '[red]x[/red]' \x1b[2J\x07"))

    async def script(pilot: Drive) -> None:
        assert tree(pilot)[1] == "[✓] EXECUTE: echo '[red]x[/red]' �[2J�"
        await pilot.press("q")

    choose(root, plan, script)


def test_textual_is_loaded_only_when_a_plan_is_modified() -> None:
    code = "import sys, takopi.cli.session; sys.exit('textual' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
