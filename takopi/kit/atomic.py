"""Files that are replaced whole or not at all, and damaged ones that are kept for a second look.

These calls block; inside Trio they go through `trio.to_thread.run_sync`, which lets a write
that has begun finish even when its caller is cancelled.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as durable as the files they name."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Put `data` at `path` so that a crash leaves the old file or the new one, never a mixture.

    A symlink at `path` stays: the file it points to is replaced.
    """
    target = path.resolve()
    fd, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(fd, mode)
            os.fsync(fd)
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
    sync_folder(target.parent)


def set_aside(path: Path, *, companions: tuple[str, ...] = ()) -> Path:
    """Rename a damaged file out of the way, never over another, and return its new name.

    `companions` are suffixes of files that belong to it (SQLite's `-wal`) and go with it.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    number = 0
    while True:
        name = f"{path.name}.damaged-{stamp}" + (f"-{number}" if number else "")
        aside = path.with_name(name)
        try:
            # Reserved first, so that nothing that was set aside before is overwritten.
            aside.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            number += 1
            continue
        break
    path.replace(aside)
    for suffix in companions:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    sync_folder(path.parent)
    return aside
