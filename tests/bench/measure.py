"""Measuring one thing against a floor in the same run, so that a busy machine disturbs both."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A figure, its floor, and the most their ratio should be (or the figure itself)."""

    name: str
    value: float
    unit: str
    floor_name: str
    floor: float
    aim: str

    @property
    def ratio(self) -> float:
        return self.value / self.floor


def print_table(rows: Iterable[Row]) -> None:
    print(f"{'what':<34} {'value':>12} {'floor':>12} {'ratio':>7}  aim and floor")
    for row in rows:
        print(
            f"{row.name:<34} {row.value:>9.2f} {row.unit:<2} {row.floor:>9.2f} {row.unit:<2} "
            f"{row.ratio:>6.2f}x  {row.aim}; floor: {row.floor_name}"
        )


def median(values: list[float]) -> float:
    return statistics.median(values)
