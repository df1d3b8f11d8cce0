"""Every promise names the tests that show it, those tests exist, and no promise is left out."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TABLES: dict[str, dict[str, list[str]]] = tomllib.loads((TESTS / "requirements.toml").read_text())
ROWS = {f"{table} {row}": tests for table, rows in TABLES.items() for row, tests in rows.items()}
PAGE = (TESTS.parent / "docs/explanation/promises.md").read_text(encoding="utf-8")


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@pytest.mark.parametrize("row", ROWS)
def test_promise_is_shown_by_tests_that_exist(row: str) -> None:
    assert ROWS[row], f"no test shows {row}"
    for name in ROWS[row]:
        file, _, function = name.partition("::")
        assert function in functions(TESTS / file), f"{name} is not there"
        assert function.startswith("test_"), f"{name} is no test"


def test_no_test_shows_a_promise_twice() -> None:
    assert not {row: tests for row, tests in ROWS.items() if len(set(tests)) != len(tests)}


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
