"""SQLite's failures in takopi's words: the disk's and the file's, never the code's own mistakes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from takopi.core.errors import StoreFailed, StoreUnfit

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_IN_USE = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_NO_ACCESS = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY})
_DISK = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT})


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's own result code, without its details; None where Python raised the error itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken: a lock, a full disk or a missing right is not that."""
    return primary_code(error) in _DAMAGED


def store_failure(error: sqlite3.Error, path: Path) -> StoreFailed | None:
    """What to tell the caller; None when the statement was wrong and not the disk."""
    failure = _in_words(error, path)
    if failure is not None:
        failure.__cause__ = error
    return failure


def _in_words(error: sqlite3.Error, path: Path) -> StoreFailed | None:
    code = primary_code(error)
    if code in _DAMAGED:
        return StoreUnfit(
            f"{path} is damaged ({error})",
            way_out="restart takopi: it sets the damaged file aside and starts a fresh one",
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreFailed(
            f"there is no space left for {path}",
            way_out=f"free some space in {path.parent}; takopi goes on by itself",
        )
    if code in _IN_USE:
        return StoreFailed(
            f"another process holds {path}",
            way_out=f"find it with `fuser {path}` and end it",
        )
    if code in _NO_ACCESS:
        return StoreFailed(
            f"{path} cannot be opened or written ({error})",
            way_out=f"see who owns it and its folder: `ls -la {path.parent}`",
        )
    if code in _DISK:
        return StoreFailed(
            f"the disk failed under {path} ({error})",
            way_out="look for the disk's own words: `dmesg | tail`",
        )
    return None
