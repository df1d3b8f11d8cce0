"""A checklist that a script drives under Textual's pilot, and what it shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static, Tree

from takopi.cli.review_tui import Checklist, PlanTree, Row
from takopi.turns.layout import Settings
from takopi.turns.machine import Choice, everything
from takopi.turns.plan import (
    Action,
    Create,
    Edit,
    Execute,
    Memo,
    Plan,
    Swap,
)

DEADLINE_S = 120
PLAN = Plan(
    title="Bootstrap",
    rationale="Why.",
    memos=(Memo("+", "Use core.py.", "Establish."),),
    actions=(
        Create(path="src/new.py", content="new = 1\n"),
        Edit(path="old.py", swaps=(Swap("old = 1", "older = 1"),)),
        Execute(command="poetry lock"),
    ),
)
ALL = everything(PLAN)
Drive = Pilot[Choice | None]
Script = Callable[[Drive], Awaitable[None]]


def choose(
    root: Path, plan: Plan, script: Script, *, editor: str = "", size: tuple[int, int] = (80, 24)
) -> Choice | None:
    """What is chosen when the checklist is driven by a script."""
    checklist = Checklist(root, plan, settings=Settings(preview_command=editor))

    async def main() -> Choice | None:
        async with checklist.run_test(size=size, notifications=True) as pilot:
            await script(pilot)
        return checklist.return_value

    # Where trio-asyncio was loaded, the policy makes loops of its own kind.
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        choice = runner.run(main())
    for window in checklist.windows:
        assert window.wait(DEADLINE_S) >= 0
    return choice


def tree(pilot: Drive) -> list[str]:
    """The lines of the tree."""
    lines: list[str] = []
    found: Tree[Row] = pilot.app.screen_stack[0].query_one(PlanTree)
    for branch in found.root.children:
        lines += [str(branch.label), *(str(leaf.label) for leaf in branch.children)]
    return lines


def words(pilot: Drive) -> str:
    """All that the screen on top says."""
    return "\n".join(str(one.content) for one in pilot.app.screen.query(Static))


async def until(pilot: Drive, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, words(pilot)
        await pilot.pause(0.01)


async def until_words(pilot: Drive, part: str) -> None:
    await until(pilot, lambda: part in words(pilot))


async def until_closed(pilot: Drive) -> None:
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


def editor(root: Path, script: str) -> tuple[str, Path]:
    """A previewer that does this to the file `$1`, and the file that it makes when it is done."""
    done = root / "edited"
    path = root / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n: > {done}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path), done


def with_actions(*actions: Action) -> Plan:
    return Plan(title="T", rationale="", actions=actions)
