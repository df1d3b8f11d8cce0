"""Measuring one thing against a floor in the same run, so that a busy machine disturbs both."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A figure, its floor, and in words what it should be; `most` says it as a number."""

    name: str
    value: float
    unit: str
    floor_name: str
    floor: float
    aim: str
    most: float | None = None

    @property
    def ratio(self) -> float:
        return self.value / self.floor if self.floor else 0.0

    @property
    def verdict(self) -> str:
        if self.most is None:
            return ""
        return "reached" if self.value <= self.most else "MISSED"


def against_aim(name: str, value: float, *, unit: str, aim: float) -> Row:
    """A figure that has no floor: its ratio says how much of the aim is used up."""
    return Row(name, value, unit, "the aim", aim, f"at most {aim:g} {unit}", most=aim)


def print_table(rows: Iterable[Row]) -> None:
    print(f"{'what':<46} {'value':>12} {'floor':>12} {'ratio':>7}  {'':<7}  aim and floor")
    for row in rows:
        print(
            f"{row.name:<46} {row.value:>9.2f} {row.unit:<2} {row.floor:>9.2f} {row.unit:<2} "
            f"{row.ratio:>6.2f}x  {row.verdict:<7}  {row.aim}; floor: {row.floor_name}"
        )


def median(values: list[float]) -> float:
    return statistics.median(values)
