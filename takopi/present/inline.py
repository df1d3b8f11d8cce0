"""Writes the inside of a paragraph: words, styles, code and links, with their spans."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from takopi.core.outgoing import Mark, MarkKind
from takopi.present.units import length

if TYPE_CHECKING:
    from markdown_it.token import Token

_STYLES: dict[str, MarkKind] = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_WEB = re.compile(r"(?:https?://|tg://|mailto:)[^\s/]", re.IGNORECASE)
_TARGET_CHARS = 300


@dataclass(frozen=True, slots=True)
class _Opening:
    """Where something began: in the text, and in the writer's lists."""

    offset: int
    chunk: int
    span: int
    address: str = ""


class Writer:
    """Text as it grows, with spans that nest like the tokens they come from."""

    def __init__(self) -> None:
        self.chunks: list[str] = []
        self.spans: list[Mark] = []
        self.offset = 0
        self._open: list[_Opening] = []

    def write(self, text: str) -> None:
        """Go on with `text`."""
        self.chunks.append(text)
        self.offset += length(text)

    def mark(self, kind: MarkKind, start: int, extra: str = "") -> None:
        """Mark everything from `start` to here."""
        self.spans.append(Mark(kind, start, self.offset - start, extra))

    def write_inline(self, tokens: Iterable[Token], *, line_break: str) -> None:
        """Go on with what a paragraph, a heading or a cell holds."""
        for token in tokens:
            match token.type:
                case "softbreak" | "hardbreak":
                    self.write(line_break)
                case "code_inline":
                    self._write_code(token.content)
                case "image":
                    opening = self._opening(token, "src")
                    self.write(token.content)
                    self._end_link(opening)
                case "link_open":
                    self._open.append(self._opening(token, "href"))
                case "link_close":
                    self._end_link(self._open.pop())
                case "strong_open" | "em_open" | "s_open":
                    self._open.append(self._opening(token))
                case "strong_close" | "em_close" | "s_close":
                    self.mark(_STYLES[token.tag], self._open.pop().offset)
                case _:
                    self.write(token.content)

    def _opening(self, token: Token, address: str = "") -> _Opening:
        found = str(token.attrGet(address) or "") if address else ""
        return _Opening(self.offset, len(self.chunks), len(self.spans), found)

    def _write_code(self, text: str) -> None:
        start = self.offset
        self.write(text)
        self.mark("code", start)

    def _end_link(self, opening: _Opening) -> None:
        label = "".join(self.chunks[opening.chunk :]).strip()
        if _WEB.match(opening.address):
            if not label:
                self.write(opening.address)
            self.mark("link", opening.offset, opening.address)
            return
        target = _local(opening.address)
        if not target or target.startswith("#"):
            return
        if label in target or target in label:
            del self.chunks[opening.chunk :]
            del self.spans[opening.span :]
            self.offset = opening.offset
            self._write_code(target if label in target else label)
        else:
            self.write(" (")
            self._write_code(target)
            self.write(")")


def _local(address: str) -> str:
    """What a link inside the machine points to, as a person would type it."""
    typed = unquote(address)
    return (typed if typed.isprintable() else address)[:_TARGET_CHARS].strip()
