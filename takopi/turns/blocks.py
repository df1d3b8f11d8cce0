"""Cuts a plan's markdown into its outermost blocks, each with the source lines it came from.

Blocks are found by the letter of CommonMark; text is taken from the source, so that nothing of it
is lost on the way. HTML, references and underlined headings mean nothing in a plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]*(.*?)[ \t]*$", re.DOTALL)
_CRAMPED = re.compile(r"#{1,3}[^#\s].*")

BlockKind = Literal["heading", "fence", "list", "rule", "text"]


@dataclass(frozen=True, slots=True)
class Block:
    """One block: lines `start` to `end` of the source (counted from 0, `end` not included).

    `text` is a heading's words or a fence's content; `level` is the level of a heading, and -1 of
    a fence that is never closed.
    """

    kind: BlockKind
    start: int
    end: int
    text: str = ""
    level: int = 0


def split_lines(text: str) -> list[str]:
    """The lines as markdown counts them, each with its own end."""
    return _LINE.findall(text)


def bare(line: str) -> str:
    """A line without its end."""
    return line.rstrip("\r\n")


def read_blocks(text: str) -> tuple[list[str], list[Block]]:
    """The lines of a text, and its outermost blocks."""
    lines = split_lines(text)
    blocks: list[Block] = []
    for token in _markdown().parse(text):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        start, end = token.map
        match token.type:
            case "heading_open":
                blocks.append(_heading(lines[start], start))
            case "fence":
                blocks.append(_fence(lines[start:end], start))
            case "bullet_list_open":
                blocks += _list(lines, start, end)
            case "hr":
                blocks.append(Block("rule", start, end))
            case "paragraph_open" if end == start + 1 and _CRAMPED.fullmatch(bare(lines[start])):
                blocks.append(_heading(lines[start], start))
            case _:
                blocks.append(Block("text", start, end))
    return lines, blocks


def _list(lines: list[str], start: int, end: int) -> list[Block]:
    """A list up to a line at the margin that is no item: it is nobody's continuation here."""
    cut = next((n for n in range(start, end) if re.match(r"(?![-*+][ \t])\S", lines[n])), end)
    return [Block("list", start, cut), *([Block("text", cut, end)] if cut < end else [])]


def _heading(line: str, start: int) -> Block:
    found = _HEADING.match(bare(line))
    marks, words = (found[1], found[2]) if found else ("#", line)
    return Block("heading", start, start + 1, words, len(marks))


def _fence(lines: list[str], start: int) -> Block:
    opening = bare(lines[0])
    marks = re.match(r" *(`+|~+)", opening)
    run = marks[1] if marks else "```"
    closing = rf" {{0,3}}{run[0]}{{{len(run)},}}[ \t]*"
    closed = len(lines) > 1 and re.fullmatch(closing, bare(lines[-1])) is not None
    indent = len(opening) - len(opening.lstrip(" "))
    inside = lines[1:-1] if closed else lines[1:]
    if indent:
        inside = [re.sub(rf"^ {{0,{indent}}}", "", line) for line in inside]
    return Block("fence", start, start + len(lines), "".join(inside), 0 if closed else -1)


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["inline", "html_block", "reference", "lheading"])
