"""What people read, and the blocks of code in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A block of code. `kind` is the word behind the fence, or "" where it is only indented."""

    page: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*kinds: str) -> list[Block]:
    """Every block of these kinds, or of any where none is named, page by page."""
    return [block for page in PAGES for block in _blocks(page) if not kinds or block.kind in kinds]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    fenced = r"^(?P<margin> *)```(?P<kind>\w*)\n(?P<fenced>.*?)^(?P=margin)```$"
    pattern = rf"{fenced}|(?<=\n\n)(?P<indented>(?: {{4}}[^\n]*\n)+)"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start()) + 1
        if match["indented"] is None:
            inside = re.sub(rf"^{match['margin']}", "", match["fenced"], flags=re.MULTILINE)
            yield Block(page, line, match["kind"], inside)
        else:
            yield Block(page, line, "", re.sub(r"^ {4}", "", match["indented"], flags=re.MULTILINE))
