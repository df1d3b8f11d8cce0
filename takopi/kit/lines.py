"""Splits a byte stream into lines without trusting the sender about their length.

Memory is bounded by the limit whatever comes: a longer line is skipped and reported with its size,
an unterminated last line is a line, and every line is valid UTF-8.
"""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass
from typing import Protocol

CHUNK_BYTES = 64 * 1024


class ByteSource(Protocol):
    """Anything that gives bytes, and an empty piece at its end."""

    async def receive_some(self, max_bytes: int | None = None, /) -> bytes | bytearray:
        """The next piece."""
        ...


@dataclass(frozen=True, slots=True)
class Oversize:
    """A line that was longer than the limit, and how long."""

    size: int


class LineReader:
    """Gives lines by the batch: all that were complete in one piece of the stream."""

    def __init__(self, source: ByteSource, *, max_bytes: int) -> None:
        self._source = source
        self._max_bytes = max_bytes
        # A line that lies within one piece needs no check of its length.
        self._chunk_bytes = min(CHUNK_BYTES, max_bytes)
        self._rest = bytearray()
        self._skipped = 0
        self._ended = False

    async def receive(self) -> list[bytes | Oversize]:
        """Wait for at least one line; none means the end. A cancelled call loses nothing."""
        while not self._ended:
            chunk = await self._source.receive_some(self._chunk_bytes)
            self._ended = not chunk
            batch = self._split(chunk) if chunk else self._flush()
            if batch:
                return batch
        return []

    def _split(self, chunk: bytes | bytearray) -> list[bytes | Oversize]:
        cut = chunk.rfind(b"\n")
        if cut < 0:
            self._keep(chunk)
            return []
        first_cut = chunk.find(b"\n")
        self._keep(chunk[:first_cut])
        batch = self._flush_line()
        if first_cut < cut:
            batch += _clean(bytes(chunk[first_cut + 1 : cut])).split(b"\n")
        self._keep(chunk[cut + 1 :])
        return batch

    def _keep(self, piece: bytes | bytearray) -> None:
        if self._skipped:
            self._skipped += len(piece)
        elif len(self._rest) + len(piece) > self._max_bytes:
            self._skipped = len(self._rest) + len(piece)
            self._rest = bytearray()
        else:
            self._rest += piece

    def _flush_line(self) -> list[bytes | Oversize]:
        if self._skipped:
            line: bytes | Oversize = Oversize(self._skipped)
            self._skipped = 0
        else:
            rest, self._rest = bytes(self._rest), bytearray()
            line = _clean(rest)
        return [line]

    def _flush(self) -> list[bytes | Oversize]:
        return self._flush_line() if self._rest or self._skipped else []


def _clean(block: bytes) -> bytes:
    if block.isascii() or _is_utf8(block):
        return block
    # Piece by piece into one buffer, which is handed over and not copied: the text of a long line
    # would be several times its size.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    clean = io.BytesIO()
    for start in range(0, len(block), CHUNK_BYTES):
        clean.write(decoder.decode(block[start : start + CHUNK_BYTES]).encode())
    clean.write(decoder.decode(b"", final=True).encode())
    return clean.getvalue()


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        # It holds a copy of the block, so it must be gone before the cleaning begins.
        return False
    return True
