"""The long-term memory of a project: a list of sentences that every agent gets to read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from takopi.turns.layout import FOLDER, read_yaml, write_yaml
from takopi.turns.plan import Memo


def memos_file(root: Path) -> Path:
    """Where a project keeps them."""
    return root / FOLDER / "memos.yaml"


def read_memos(root: Path) -> tuple[str, ...]:
    """All memos; `Refused` if the file is not a list of text."""
    path = memos_file(root)
    if not path.is_file() or not path.read_bytes().strip():
        return ()
    return tuple(read_yaml(path, list[str]))


def changed(memos: Iterable[str], changes: Iterable[Memo]) -> tuple[str, ...]:
    """The memos after the changes; one that is there is not added again."""
    kept = list(memos)
    for change in changes:
        if change.sign == "+" and change.text not in kept:
            kept.append(change.text)
        elif change.sign == "-" and change.text in kept:
            kept.remove(change.text)
    return tuple(kept)


def write_memos(root: Path, memos: Iterable[str]) -> None:
    """Replace the file."""
    write_yaml(memos_file(root), list(memos))
