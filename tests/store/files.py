"""Files of a store, made, opened, and left behind as by a crash."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from takopi.store.opening import Opened, open_file
from takopi.store.schema import STEPS, Step
from tests.store.rows import receive


@contextmanager
def opened(path: Path, *, steps: tuple[Step, ...] = STEPS, busy_s: float = 5) -> Generator[Opened]:
    got = open_file(path, steps=steps, busy_s=busy_s)
    try:
        yield got
    finally:
        got.reader.close()
        got.writer.close()


def make(path: Path, *, updates: int = 200) -> None:
    with opened(path) as got:
        got.writer.execute("BEGIN")
        receive(got.writer, *range(updates))
        got.writer.execute("COMMIT")


def crash_copy(source: Path, target: Path) -> None:
    """What a crash would leave behind: the file and its log, never closed."""
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{source}{suffix}", f"{target}{suffix}")


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
