"""Renders any markdown to text with valid marks: it cannot fail, and no text of an answer is lost.

The time is linear in the length of the input. HTML is shown as it is written; a blank line stands
where the author left one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from takopi.core.outgoing import Text
from takopi.present.inline import Writer
from takopi.present.marks import settle
from takopi.present.tables import Align, draw

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

RENDERED_CHARS = 60_000
"""What comes after this much, some 15 messages, is kept as it is written."""

_INDENT = "    "
_BULLETS = ("• ", "◦ ")
_RULE = "———"
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}", re.ASCII)
_LINE_END = re.compile(r"\r\n?")
_PIPE = re.compile(r"(?<!\\)\|")
_CONTAINERS = re.compile(r"^(?:[\s>]|[-*+]\s|\d{1,9}[.)]\s)+")
_TASK = re.compile(r"\[([ xX])\] +(?=\S)")
_ALIGNS: dict[str, Align] = {"text-align:center": "center", "text-align:right": "right"}


def render(markdown: str) -> Text:
    """The markdown as a person reads it."""
    markdown = _LINE_END.sub("\n", markdown)
    head, rest = markdown, ""
    if len(markdown) > RENDERED_CHARS:
        cut = markdown.rfind("\n", 0, RENDERED_CHARS) + 1 or RENDERED_CHARS
        head, rest = markdown[:cut], markdown[cut:].strip()
    writer = Writer()
    _Blocks(writer, head.split("\n")).write(_parser().parse(head))
    if rest:
        writer.write(f"\n{rest}" if writer.offset else rest)
    return settle("".join(writer.chunks), writer.spans)


class _Blocks:
    """Writes block after block, on a new line or after a blank one, as the source has it."""

    def __init__(self, writer: Writer, source: Sequence[str]) -> None:
        self._writer = writer
        self._source = source
        self._prefixes: list[str] = []
        self._bullets: list[str] = []
        self._marker = ""
        self._marker_line = 0
        self._last_line = 0
        self._quotes = 0
        self._quote_start: int | None = None

    def write(self, tokens: Sequence[Token]) -> None:
        index = 0
        while index < len(tokens):
            token = tokens[index]
            match token.type:
                case "inline":
                    self._write_paragraph(token, opening=tokens[index - 1])
                case "fence" | "code_block":
                    self._write_pre(token, token.content, _language(token.info))
                case "hr":
                    self._begin(token.map)
                    self._writer.write(_RULE)
                case "table_open":
                    end = next(i for i in range(index, len(tokens)) if _closes(tokens[i], token))
                    first, last = token.map or (0, 0)
                    self._write_pre(token, _table(tokens[index:end], self._source[first:last]))
                    index = end
                case "blockquote_open" | "blockquote_close":
                    self._nest_quote(by=token.nesting)
                case _:
                    self._nest_list(token)
            index += 1

    def _nest_list(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._bullets.append(_BULLETS[len(self._bullets) % len(_BULLETS)])
            case "ordered_list_open":
                self._bullets.append("")
            case "bullet_list_close" | "ordered_list_close":
                self._bullets.pop()
            case "list_item_open":
                self._write_bare_marker()
                self._marker = self._bullets[-1] or f"{token.info}{token.markup} "
                self._marker_line = token.map[0] if token.map else 0
                self._prefixes.append(_INDENT)
            case "list_item_close":
                self._write_bare_marker()
                self._prefixes.pop()
            case _:
                pass

    def _nest_quote(self, *, by: int) -> None:
        self._write_bare_marker()
        outermost = self._quotes == (by < 0)
        self._quotes += by
        if not outermost:
            # Quotes do not nest in a chat.
            self._prefixes.append("> ") if by > 0 else self._prefixes.pop()
        elif by < 0 and self._quote_start is not None:
            self._writer.mark("quote", self._quote_start)
            self._quote_start = None

    def _begin(self, lines: Sequence[int] | None, *, flush_left: bool = False) -> None:
        first, end = lines or (0, 0)
        if self._writer.offset:
            self._writer.write("\n\n" if first > self._last_line else "\n")
        self._last_line = end
        if self._quotes and self._quote_start is None:
            self._quote_start = self._writer.offset
        if self._marker:
            self._writer.write("".join(self._prefixes[:-1]) + self._marker)
            self._marker = ""
        elif self._prefixes and not flush_left:
            self._writer.write("".join(self._prefixes))

    def _write_bare_marker(self) -> None:
        """Give an item its line when no words of its own follow: it is empty, or holds a block."""
        if self._marker:
            self._marker = self._marker.rstrip()
            self._begin((self._marker_line, self._marker_line + 1))

    def _write_pre(self, token: Token, content: str, language: str = "") -> None:
        self._write_bare_marker()
        if content.strip():
            self._begin(token.map, flush_left=True)
            start = self._writer.offset
            self._writer.write(content.rstrip().expandtabs(4))
            self._writer.mark("pre", start, language)

    def _write_paragraph(self, token: Token, *, opening: Token) -> None:
        children = token.children or []
        if self._marker and children and (task := _TASK.match(children[0].content)):
            self._marker = "☐ " if task[1] == " " else "✓ "
            children[0].content = children[0].content[task.end() :]
        self._begin(opening.map)
        start = self._writer.offset
        self._writer.write_inline(children, line_break="\n" + "".join(self._prefixes))
        if opening.type == "heading_open":
            self._writer.mark("bold", start)


def _closes(token: Token, opening: Token) -> bool:
    return token.type == "table_close" and token.level == opening.level


def _table(tokens: Sequence[Token], source: Sequence[str]) -> str:
    rows: list[list[str]] = []
    aligns: list[Align] = []
    for token in tokens:
        match token.type:
            case "tr_open":
                rows.append([])
            case "th_open":
                aligns.append(_ALIGNS.get(str(token.attrGet("style")), "left"))
            case "inline":
                cell = Writer()
                cell.write_inline(token.children or (), line_break=" ")
                rows[-1].append("".join(cell.chunks).strip())
            case _:
                pass
    # Cells that the head has no column for are not among the tokens.
    if any(_cell_count(line) > len(aligns) for line in source):
        return "\n".join(source)
    return draw(rows, aligns)


def _cell_count(line: str) -> int:
    line = _CONTAINERS.sub("", line, count=1).rstrip()
    pipes = len(_PIPE.findall(line))
    return pipes + 1 - line.startswith("|") - (pipes > 0 and line.endswith("|"))


def _language(info: str) -> str:
    found = _LANGUAGE.match(info.strip())
    return found[0] if found else ""


@cache
def _parser() -> MarkdownIt:
    from takopi.present.dialect import make_parser

    return make_parser()
