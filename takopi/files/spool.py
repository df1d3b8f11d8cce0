"""Big files lie on the disk while they are on their way, each for as long as a row names it.

A row of the store names a file once all of it is on the disk, so what a row names is whole. What
no row names is removed, whatever left it there.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import FileIO, RawIOBase
from pathlib import Path
from typing import BinaryIO

import structlog
import trio

from takopi.core.errors import Refused, StoreFailed, Unfit
from takopi.core.outgoing import Spooled
from takopi.kit.atomic import sync_folder
from takopi.store import spooled as rows
from takopi.store.database import Database

SWEEP_S = 5.0

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.files")


class NewFile:
    """A file that is being written; these calls block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.fdopen(os.open(path, _NEW, 0o600), "wb", buffering=0)

    def write(self, piece: bytes) -> None:
        """Put this at its end."""
        append(self._file, piece)

    def finish(self) -> Spooled:
        """What a row may name from now on: all of it is on the disk."""
        try:
            os.fsync(self._file.fileno())
            sync_folder(self._path.parent)
        except OSError as error:
            raise _not_kept(error) from error
        return Spooled(self._path.name, self._file.tell())

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()


class Spool:
    """The folder of these files."""

    def __init__(self, folder: Path, db: Database) -> None:
        self._folder = folder
        self._db = db
        self._new: set[str] = set()

    async def prepare(self) -> None:
        """Make the folder, private, and remove what a crash left in it."""
        try:
            await trio.to_thread.run_sync(_make_private, self._folder)
        except OSError as error:
            raise Unfit(
                f"{self._folder} cannot be used: {error.strerror}",
                way_out=f"look at what is there, and move it away: `ls -ld {self._folder}`",
            ) from error
        await self.sweep()

    @asynccontextmanager
    async def new(self) -> AsyncGenerator[NewFile, None]:
        """A file to be written; it stays if a row names it by the end of the block."""
        name = secrets.token_hex(16)
        self._new.add(name)
        try:
            file = await trio.to_thread.run_sync(self._create, name)
            try:
                yield file
            finally:
                file.close()
        finally:
            self._new.discard(name)
            with trio.move_on_after(SWEEP_S, shield=True):
                await self.sweep()

    def open(self, spooled: Spooled, *, shown: str) -> BinaryIO:
        """The file, to be read; refused when it is gone or is not as it was. Blocks."""
        try:
            file = os.fdopen(os.open(self._folder / spooled.name, _OLD), "rb", buffering=0)
        except OSError:
            raise lost(shown) from None
        if os.fstat(file.fileno()).st_size != spooled.size_bytes:
            file.close()
            raise lost(shown)
        return file

    def path(self, spooled: Spooled) -> Path:
        """Where the file lies, if it does."""
        return self._folder / spooled.name

    def scratch(self) -> FileIO:
        """A file without a name, gone once it is closed, whatever becomes of takopi. Blocks."""
        try:
            return tempfile.TemporaryFile(dir=self._folder, buffering=0)
        except OSError as error:
            raise _not_kept(error) from error

    async def sweep(self) -> None:
        """Remove what no row names."""
        try:
            # In this order: what is there and not new was named before, or never will be.
            found = await trio.to_thread.run_sync(os.listdir, self._folder)
            old = [name for name in found if name not in self._new]
            if old:
                named = await self._db.read(rows.named)
                await trio.to_thread.run_sync(self._remove, [n for n in old if n not in named])
        except (OSError, StoreFailed) as error:
            log.warning("spool.not_swept", why=str(error))

    def _create(self, name: str) -> NewFile:
        try:
            return NewFile(self._folder / name)
        except OSError as error:
            raise _not_kept(error) from error

    def _remove(self, names: list[str]) -> None:
        for name in names:
            (self._folder / name).unlink(missing_ok=True)


def append(file: RawIOBase, piece: bytes) -> None:
    """Put all of this at the end of a file without a buffer; refused when the disk is full."""
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[file.write(rest) or 0 :]
    except OSError as error:
        raise _not_kept(error) from error


def lost(shown: str) -> Refused:
    """Why a file that a row names cannot be had."""
    return Refused(
        f"{shown} was not sent: takopi's copy of it is gone or damaged", way_out="ask for it again"
    )


def _not_kept(error: OSError) -> Refused:
    return Refused(
        f"takopi cannot keep the file: {error.strerror}",
        way_out="look at the disk that its home is on, and try again",
    )


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
