"""Every promise that is kept so far names the tests that show it, and those tests exist."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROWS: dict[str, list[str]] = {
    f"{table} {row}": tests
    for table, rows in tomllib.loads((TESTS / "requirements.toml").read_text()).items()
    for row, tests in rows.items()
}


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("row", ROWS)
def test_promise_is_shown_by_tests_that_exist(row: str) -> None:
    assert ROWS[row], f"no test shows {row}"
    for name in ROWS[row]:
        file, _, function = name.partition("::")
        assert function in functions(TESTS / file), f"{name} is not there"
