"""Durations, counts, sizes and costs as a person says them: short, to two or three digits."""

from __future__ import annotations

_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S
_DAY_S = 24 * _HOUR_S


def duration(seconds: float) -> str:
    """`12s`, `3m 05s`, `1h 02m`, `2d 03h`."""
    whole = max(int(seconds), 0)
    if whole < _MINUTE_S:
        return f"{whole}s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S}m {whole % _MINUTE_S:02}s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S}h {whole % _HOUR_S // _MINUTE_S:02}m"
    return f"{whole // _DAY_S}d {whole % _DAY_S // _HOUR_S:02}h"


def ago(seconds: float) -> str:
    """How long ago, to one unit: `just now`, `5m ago`, `3h ago`, `2d ago`."""
    whole = int(seconds)
    if whole < _MINUTE_S:
        return "just now"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S}m ago"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S}h ago"
    return f"{whole // _DAY_S}d ago"


def count(number: int) -> str:
    """`340`, `1.2k`, `12k`, `3.4M`."""
    return _scaled(number, ("", "k", "M", "G", "T"))


def size(number_bytes: int) -> str:
    """`512 B`, `1.2 kB`, `34 MB`."""
    return _scaled(number_bytes, (" B", " kB", " MB", " GB", " TB"))


def cost(usd: float) -> str:
    """`$0.04`; what is less than a cent, but not nothing, is `<$0.01`."""
    return "<$0.01" if 0 < usd < 0.005 else f"${max(usd, 0):.2f}"


def _scaled(number: int, suffixes: tuple[str, ...]) -> str:
    value = float(max(number, 0))
    for suffix in suffixes[:-1]:
        # What would be rounded up to 1000 belongs to the next unit.
        if value < 999.5:
            exact = suffix == suffixes[0] or value >= 9.95
            return f"{value:.0f}{suffix}" if exact else f"{value:.1f}{suffix}"
        value /= 1000
    return f"{value:.0f}{suffixes[-1]}"
