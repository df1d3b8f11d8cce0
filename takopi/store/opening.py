"""A path becomes a sound, private, current database, and nothing that was there is overwritten.

These calls block; `database.py` makes them in a thread.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.kit.atomic import set_aside
from takopi.store.faults import is_damage, primary_code, store_failure
from takopi.store.migrate import create_private, migrate, version_of
from takopi.store.schema import Step

# STRICT tables.
_OLDEST_SQLITE = (3, 37, 0)


@dataclass(frozen=True, slots=True)
class Opened:
    """The connections to a sound database, and what had to be done to have one."""

    path: Path
    writer: sqlite3.Connection
    reader: sqlite3.Connection
    set_aside: Path | None
    backup: Path | None


def open_file(path: Path, *, steps: tuple[Step, ...], busy_s: float) -> Opened:
    """Open or create the database at `path`; a damaged one is set aside, a newer one refused."""
    require_sqlite(sqlite3.sqlite_version_info)
    try:
        path = path.resolve()
        _prepare(path)
        aside = None
        if _is_damaged(path, known=len(steps), busy_s=busy_s):
            aside = set_aside(path, companions=("-wal", "-shm", "-journal"))
            create_private(path)
        return _open_sound(path, steps=steps, busy_s=busy_s, aside=aside)
    except OSError as error:
        raise StoreFailed(
            f"{path} cannot be used ({error.strerror})",
            way_out=f"see who owns it and its folder: `ls -la {path.parent}`",
        ) from error
    except sqlite3.Error as error:
        failure = store_failure(error, path)
        if failure is None:
            raise
        raise failure from error


@contextmanager
def look_into(path: Path, *, known: int, busy_s: float) -> Generator[sqlite3.Connection]:
    """A connection that can change nothing, beside a daemon that writes; there must be a file.

    Refuses what an older or a newer takopi has written.
    """
    try:
        with closing(_connect(path, mode="ro", busy_s=busy_s)) as conn:
            if version_of(conn, path, known=known) < known:
                raise StoreUnfit(
                    f"{path} was written by an older takopi",
                    way_out="start takopi once: it moves the file on, after a backup",
                )
            yield conn
    except sqlite3.Error as error:
        failure = store_failure(error, path)
        if failure is None:
            raise
        raise failure from error


def require_sqlite(version: tuple[int, ...]) -> None:
    """Refuse an SQLite that lacks what the tables need."""
    if version < _OLDEST_SQLITE:
        have, need = (".".join(map(str, v)) for v in (version, _OLDEST_SQLITE))
        raise StoreUnfit(
            f"this Python has SQLite {have}, and takopi needs {need} or newer",
            way_out="run takopi with a Python that brings its own: uv python install 3.12",
        )


def _prepare(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreFailed(
            f"the folder {path.parent} for {path.name} does not exist",
            way_out=f"make it: mkdir -m 700 -p {path.parent}",
        )
    try:
        create_private(path)
    except FileExistsError:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise StoreFailed(
                f"{path} is not a file", way_out=f"move it away: mv {path} {path}.other"
            ) from None
        if stat.S_IMODE(mode) != 0o600:
            path.chmod(0o600)


def _is_damaged(path: Path, *, known: int, busy_s: float) -> bool:
    wal = path.with_name(path.name + "-wal")
    if path.stat().st_size == 0 and wal.exists() and wal.stat().st_size > 0:
        # SQLite would take the empty file for a new database and delete the rows in the log.
        return True
    try:
        return not _looks_sound(path, known=known, busy_s=busy_s)
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_READONLY:
            raise
    # A crash left a rollback journal, which only a writer may play back.
    with closing(_connect(path, mode="rw", busy_s=busy_s)) as conn:
        conn.execute("SELECT 1 FROM sqlite_master").fetchone()
    return not _looks_sound(path, known=known, busy_s=busy_s)


def _looks_sound(path: Path, *, known: int, busy_s: float) -> bool:
    # Read-only, because closing a writer's connection would move the log into a file that is
    # to be refused or set aside as it is.
    with closing(_connect(path, mode="ro", busy_s=busy_s)) as conn:
        try:
            version_of(conn, path, known=known)
            return conn.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                return False
            raise


def _open_sound(
    path: Path, *, steps: tuple[Step, ...], busy_s: float, aside: Path | None
) -> Opened:
    with ExitStack() as stack:
        writer = stack.enter_context(closing(_connect(path, mode="rw", busy_s=busy_s)))
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = FULL")
        backup = migrate(writer, path, steps=steps)
        writer.execute("PRAGMA foreign_keys = ON")
        reader = stack.enter_context(closing(_connect(path, mode="ro", busy_s=busy_s)))
        stack.pop_all()
    return Opened(path, writer, reader, aside, backup)


def _connect(path: Path, *, mode: str, busy_s: float) -> sqlite3.Connection:
    conn = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_s,
        # Transactions are begun and ended by hand, and the worker thread is not always the same.
        isolation_level=None,
        check_same_thread=False,
    )
    conn.row_factory = sqlite3.Row
    return conn
