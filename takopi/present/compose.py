"""Puts text together from pieces whose marks stay where they belong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from takopi.core.outgoing import Mark, MarkKind, Text
from takopi.present.marks import settle, shift
from takopi.present.units import length, narrow

Piece: TypeAlias = str | Text

EMPTY = Text("")


def plain(text: str) -> Text:
    """Text without marks."""
    return Text(narrow(text))


def bold(piece: Piece) -> Text:
    """The piece in bold, but for code inside it."""
    return _marked(piece, "bold")


def italic(piece: Piece) -> Text:
    """The piece in italics, but for code inside it."""
    return _marked(piece, "italic")


def code(text: str) -> Text:
    """Text in code letters, as it stands."""
    return _marked(text, "code")


def pre(text: str, language: str = "") -> Text:
    """A block of code, indentation kept."""
    return _marked(text.expandtabs(4), "pre", language)


def link(piece: Piece, address: str) -> Text:
    """The piece as a link."""
    return _marked(piece, "link", address)


def prose(sentence: str) -> Text:
    """A sentence in which `backticks` stand around code, as errors and notices are written."""
    head, *rest = sentence.split("`")
    pieces = [plain(head)]
    for index, part in enumerate(rest):
        if index % 2:
            pieces.append(plain(part))
        elif index == len(rest) - 1 or not part.strip():
            # A backtick without its partner, or with nothing between them, is only a backtick.
            pieces.append(plain(f"`{part}" if index == len(rest) - 1 else f"`{part}`"))
        else:
            pieces.append(code(part))
    return join(pieces)


def join(pieces: Iterable[Piece], between: str = "") -> Text:
    """All pieces in a row, with `between` between them."""
    chunks: list[str] = []
    marks: list[Mark] = []
    offset, gap = 0, length(between)
    for piece in pieces:
        text = plain(piece) if isinstance(piece, str) else piece
        if chunks:
            chunks.append(between)
            offset += gap
        chunks.append(text.text)
        marks.extend(shift(text.marks, offset))
        offset += length(text.text)
    return Text("".join(chunks), tuple(marks))


def stack(pieces: Iterable[Piece], between: str = "\n") -> Text:
    """The pieces that say anything, each on lines of its own."""
    return join((piece for piece in pieces if is_said(piece)), between)


def is_said(piece: Piece) -> bool:
    """Whether there is anything to read in it."""
    return bool((piece if isinstance(piece, str) else piece.text).strip())


def _marked(piece: Piece, kind: MarkKind, extra: str = "") -> Text:
    text = plain(piece) if isinstance(piece, str) else piece
    whole = length(text.text)
    settled = settle(text.text, [*text.marks, Mark(kind, 0, whole, extra)])
    # Spaces at the end are the caller's, who may go on with more text.
    return Text(text.text, settled.marks)
