"""Every promise names the tests that show it, those tests are run, and no promise is left out."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import COLLECTED

TESTS = Path(__file__).parent
TABLES: dict[str, dict[str, list[str]]] = tomllib.loads((TESTS / "requirements.toml").read_text())
ROWS = {f"{table} {row}": tests for table, rows in TABLES.items() for row, tests in rows.items()}
PAGE = (TESTS.parent / "docs/explanation/promises.md").read_text(encoding="utf-8")
SKIPS = ("pytest.mark.skip", "pytest.mark.xfail")
"""Marks that keep a test from showing anything, wherever it runs."""


@cache
def module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def functions(path: Path) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """What stands in the module itself: a function inside of another one is no test."""
    found = (n for n in module(path).body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: node for node in found}


def is_always_skipped(path: Path, test: str) -> bool:
    """Whether a mark, or the first thing that is done, skips it on every machine."""
    node = functions(path)[test]
    marks = [
        statement.value
        for statement in module(path).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"
    ]
    words = [ast.unparse(mark).partition("(")[0] for mark in (*node.decorator_list, *marks)]
    calls = [ast.unparse(step) for step in node.body if isinstance(step, ast.Expr)]
    return any(word in SKIPS for word in words) or any(
        call.startswith(("pytest.skip(", "pytest.xfail(")) for call in calls
    )


@pytest.mark.parametrize("row", ROWS)
def test_promise_is_shown_by_tests_that_are_run(row: str, request: pytest.FixtureRequest) -> None:
    collected = request.config.stash[COLLECTED]
    whole = {name.partition("::")[0] for name in collected}
    assert ROWS[row], f"no test shows {row}"
    for name in ROWS[row]:
        file, _, test = name.partition("::")
        assert re.fullmatch(r"(\w+/)+test_\w+\.py", file), f"{file} is no file of tests"
        assert test in functions(TESTS / file), f"{name} is not there"
        assert test.startswith("test_"), f"{name} is no test"
        assert not is_always_skipped(TESTS / file, test), f"{name} is never run"
        # Where only a part of the tests was asked for, the others are not looked for.
        assert name in collected or file not in whole, f"{name} is not collected"


def test_no_test_shows_a_promise_twice() -> None:
    assert not {row: tests for row, tests in ROWS.items() if len(set(tests)) != len(tests)}


def test_no_two_rows_say_the_same() -> None:
    """One test may show two things; several tests that are the same show one."""
    rows: dict[frozenset[str], list[str]] = defaultdict(list)
    for row, tests in ROWS.items():
        rows[frozenset(tests)].append(row)
    assert not [same for tests, same in rows.items() if len(tests) > 1 and len(same) > 1]


def test_every_fault_of_the_page_has_its_row_and_its_tests() -> None:
    faults = re.findall(r"^\| ([FS]\d+) \|", PAGE, re.MULTILINE)
    known = {f"F{n}" for n in range(1, 24)} | {f"S{n}" for n in range(1, 5)}
    assert set(faults) == set(TABLES["promises"]) == known


def test_every_promise_of_the_page_has_its_row() -> None:
    said = re.findall(r"^\d+\. \*\*(.+?)\.?\*\*", PAGE, re.MULTILINE)
    assert len(said) == 11
    assert said == [*TABLES["what you can rely on"]]


def test_every_case_of_a_plan_has_its_row() -> None:
    cases = {row.split()[0] for row in TABLES["interview"] if row.startswith("TC")}
    assert cases == {f"TC{n:02}" for n in range(1, 13)}
