"""Bytes go between a stream and a file in pieces of one size, so that memory holds one of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import BinaryIO

import trio

PIECE_BYTES = 256 * 1024


async def pieces_of(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    """The content of a file from where it stands, read in a thread."""
    while piece := await trio.to_thread.run_sync(file.read, PIECE_BYTES):
        yield piece


async def pour(
    pieces: AsyncIterable[bytes],
    write: Callable[[bytes], object],
    *,
    max_bytes: int,
    too_big: Exception,
) -> None:
    """Hand all of them to `write`, which blocks; `too_big` is raised once there are more."""
    size, waiting = 0, bytearray()
    async for piece in pieces:
        size += len(piece)
        if size > max_bytes:
            raise too_big
        waiting += piece
        if len(waiting) >= PIECE_BYTES:
            await trio.to_thread.run_sync(write, bytes(waiting))
            waiting.clear()
    if waiting:
        await trio.to_thread.run_sync(write, bytes(waiting))
