"""A store on a disk of one mebibyte, mounted in a namespace of this process's own."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import trio

from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.store import inbox
from takopi.store.database import Database, open_database
from takopi.store.inbox import Update

SOURCE = "telegram:1"


def record(conn: sqlite3.Connection, number: int, *, size: int = 2000) -> None:
    updates = [Update(number, 100, b"x" * size)]
    inbox.record(conn, SOURCE, updates=updates, next_offset=number + 1, now_ms=1)


def kept(conn: sqlite3.Connection) -> tuple[list[int], int | None]:
    numbers = [received.update_id for received in inbox.pending(conn)]
    return numbers, inbox.offset(conn, SOURCE)


def expect_no_space(error: StoreFailed) -> None:
    assert not isinstance(error, StoreUnfit)
    assert error.what.startswith("there is no space left"), error.what


async def fill(db: Database) -> int:
    """Write until the disk says no; returns how many were confirmed."""
    for number in range(10_000):
        try:
            await db.write(lambda conn, one=number: record(conn, one))
        except StoreFailed as error:
            expect_no_space(error)
            return number
    raise AssertionError("the disk never filled up")


async def main(folder: Path) -> None:
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(300_000))
    with trio.fail_after(60):
        async with open_database(folder / "state.db") as db, trio.open_nursery() as nursery:
            await nursery.start(db.serve)
            confirmed = await fill(db)
            assert confirmed > 10
            assert await db.read(kept) == (list(range(confirmed)), confirmed)

            ballast.unlink()
            await db.write(lambda conn: record(conn, confirmed))
            assert await db.read(kept) == (list(range(confirmed + 1)), confirmed + 1)
            nursery.cancel_scope.cancel()
        async with open_database(folder / "state.db") as db:
            assert db.set_aside is None
            assert await db.read(kept) == (list(range(confirmed + 1)), confirmed + 1)
        await refuse_to_start_without_room(folder)
    print("confirmed", confirmed)


async def refuse_to_start_without_room(folder: Path) -> None:
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
    path = folder / "new.db"
    try:
        async with open_database(path):
            raise AssertionError("there was room after all")
    except StoreFailed as error:
        expect_no_space(error)
    ballast.unlink()
    async with open_database(path) as db:
        assert db.set_aside is None
        assert await db.read(kept) == ([], None)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", target], check=True)
    trio.run(main, target)
