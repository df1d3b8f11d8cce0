"""What the tests of the promises measured: a table of it, at the end of their long form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, cast

import pytest

from tests.faults.promises import FAULTS, LONG, shown_by

Number = int | float | str
COLLECTED = pytest.StashKey[frozenset[str]]()
"""Every test of the files that were asked for as a whole, by its name in `requirements.toml`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before any is left out by its name."""
    parts = tuple(arg.partition("::")[0] for arg in config.args if "::" in arg)
    whole = (item.nodeid for item in items if not item.nodeid.startswith(parts))
    config.stash[COLLECTED] = frozenset(_name(nodeid) for nodeid in whole)


def _name(nodeid: str) -> str:
    return nodeid.removeprefix("tests/").partition("[")[0]


class Figures(Protocol):
    """Notes what was measured for a row of the table."""

    def __call__(self, row: str, **numbers: Number) -> None: ...


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Figures:
    """What a test measured goes into the table, from whichever worker it ran in."""

    def note(row: str, **numbers: Number) -> None:
        record_property("figures", [row, numbers])

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of the promises."""
    if not LONG:
        return
    outcomes, measured = _gather(terminalreporter)
    shown = shown_by()
    terminalreporter.section("the promises under fault")
    for row, fault in FAULTS.items():
        ran = [outcomes[name] for name in shown[row] if name in outcomes]
        passed = f"{sum(ran)}/{len(ran)}" if ran else "-"
        figures = "; ".join(measured.get(row, ()))
        terminalreporter.write_line(f"{row:<4}{fault:<62}{passed:>6}  {figures}")


def _gather(reporter: pytest.TerminalReporter) -> tuple[dict[str, bool], dict[str, list[str]]]:
    """Whether each test passed, by its name in `requirements.toml`, and the figures of each row."""
    outcomes: dict[str, bool] = {}
    measured: dict[str, list[str]] = {}
    for report in _calls(reporter):
        name = _name(report.nodeid)
        outcomes[name] = outcomes.get(name, True) and report.passed
        for key, value in report.user_properties:
            if key == "figures":
                row, numbers = cast("tuple[str, dict[str, Number]]", value)
                words = [f"{what.replace('_', ' ')} {number}" for what, number in numbers.items()]
                measured.setdefault(row, []).append(", ".join(words))
    return outcomes, measured


def _calls(reporter: pytest.TerminalReporter) -> Iterator[pytest.TestReport]:
    for category in ("passed", "failed"):
        for report in reporter.stats.get(category, ()):
            if isinstance(report, pytest.TestReport) and report.when == "call":
                yield report
