"""Exchanges pieces of a file's text, each found exactly once, or says why not.

Line ends are the file's own: a plan is written with plain ones, whatever the file has.
"""

from __future__ import annotations

from collections.abc import Iterable

from takopi.turns.plan import Swap


def exchange(text: str, swaps: Iterable[Swap]) -> tuple[str, list[str]]:
    """The text after all swaps that can be made, and what is wrong with the others."""
    faults: list[str] = []
    for swap in swaps:
        find, replace = _in_ends_of(text, swap.find), _in_ends_of(text, swap.replace)
        count = _count(text, find)
        if swap.find == swap.replace:
            faults.append("REPLACE block is the same as the FIND block.")
        elif count == 0:
            faults.append(f"FIND block did not match.{_hint(text, swap.find)}")
        elif count > 1:
            faults.append(f"FIND block matches {count} times; it must match once.")
        else:
            text = _put(text, find, replace)
    return text, faults


def _in_ends_of(text: str, piece: str) -> str:
    return piece.replace("\n", "\r\n") if "\r\n" in text and "\r\n" not in piece else piece


def _count(text: str, find: str) -> int:
    """How often a piece is there, overlapping ones counted as well."""
    count, start = 0, text.find(find)
    while start >= 0:
        count, start = count + 1, text.find(find, start + 1)
    return count


def _put(text: str, find: str, replace: str) -> str:
    before, _, after = text.partition(find)
    if not replace and (not before or before.endswith("\n")):
        # Whole lines that are taken out take the end of the last one with them.
        after = after.removeprefix("\r\n") if after.startswith("\r") else after.removeprefix("\n")
    return before + replace + after


def _hint(text: str, find: str) -> str:
    """Where something stands that differs in blanks only; never used, only shown."""
    wanted = [line.split() for line in find.splitlines()]
    have = [line.split() for line in text.splitlines()]
    for start in range(len(have) - len(wanted) + 1):
        if have[start : start + len(wanted)] == wanted:
            return f" Line {start + 1} differs from it in blanks only."
    return ""
