"""A database becomes the version this takopi knows, after a backup, or stays exactly as it was."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.kit.atomic import sync_folder
from takopi.store.schema import Step

# "tako" in the file's header: without it, a database is somebody else's.
APPLICATION_ID = 0x74616B6F


def version_of(conn: sqlite3.Connection, path: Path, *, known: int) -> int:
    """The version of the file's tables, 0 for an empty file; refuses newer and foreign ones."""
    version: int = conn.execute("PRAGMA user_version").fetchone()[0]
    owner: int = conn.execute("PRAGMA application_id").fetchone()[0]
    empty = conn.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    if owner != APPLICATION_ID and not (empty and version == 0):
        raise StoreUnfit(
            f"{path} is a database, but not takopi's",
            way_out=f"move it away: mv {path} {path}.other",
        )
    if version > known:
        raise StoreUnfit(
            f"{path} was written by a newer takopi (version {version}, known here: {known})",
            way_out="install that takopi again, or put back the backup "
            f"that it made: {path.name}.v{known}-<time>",
        )
    return version


def migrate(conn: sqlite3.Connection, path: Path, *, steps: tuple[Step, ...]) -> Path | None:
    """Take the steps that are missing, all in one transaction; returns the backup, if one was made.

    Foreign keys must be off, so that a step can rebuild a table; they are checked before the end.
    """
    version = version_of(conn, path, known=len(steps))
    if version == len(steps):
        return None
    backup = _back_up(conn, path, version=version) if version else None
    conn.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version:]:
            for statement in step:
                conn.execute(statement)
        broken = conn.execute("PRAGMA foreign_key_check").fetchone()
        if broken is not None:
            raise StoreFailed(
                f"{path} cannot become version {len(steps)}: "
                f"a row of {broken[0]} would point to nothing",
                way_out="install the takopi you had before; the file is as it was",
            )
        conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        conn.execute(f"PRAGMA user_version = {len(steps)}")
        conn.execute("COMMIT")
    except BaseException:
        conn.rollback()
        if backup is not None:
            # The file is as it was; a service that tries again and again must not fill the disk.
            backup.unlink()
        raise
    return backup


def create_private(path: Path) -> None:
    """Make an empty file that only its owner can open; FileExistsError if there is one."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.close(fd)
    sync_folder(path.parent)


def _back_up(conn: sqlite3.Connection, path: Path, *, version: int) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    number = 0
    while True:
        name = f"{path.name}.v{version}-{stamp}" + (f"-{number}" if number else "")
        backup = path.with_name(name)
        try:
            create_private(backup)
        except FileExistsError:
            number += 1
            continue
        break
    try:
        with closing(sqlite3.connect(backup, isolation_level=None)) as target:
            conn.backup(target)
    except BaseException:
        backup.unlink()
        raise
    return backup
