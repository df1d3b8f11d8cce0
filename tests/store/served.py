"""A store that is served, with a table of numbers and a gate before each commit."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from takopi.store.database import Database, open_database
from takopi.store.schema import Step

STEPS: tuple[Step, ...] = (("CREATE TABLE t (x INTEGER PRIMARY KEY) STRICT",),)


def insert(value: int) -> Callable[[sqlite3.Connection], int]:
    def change(conn: sqlite3.Connection) -> int:
        conn.execute("INSERT INTO t VALUES (?)", (value,))
        return value

    return change


def values(conn: sqlite3.Connection) -> list[int]:
    return [row["x"] for row in conn.execute("SELECT x FROM t ORDER BY x")]


class Gate:
    """A change that stays inside the writer's thread until it is let go."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.go = threading.Event()
        self.inside = threading.Event()

    def __call__(self, conn: sqlite3.Connection) -> int:
        self.inside.set()
        self.go.wait(30)
        return insert(self.value)(conn)

    async def reached(self) -> None:
        assert await trio.to_thread.run_sync(self.inside.wait, 30)


@asynccontextmanager
async def served(
    path: Path, *, on_commit: Callable[[], None] | None = None, busy_s: float = 5
) -> AsyncGenerator[Database]:
    with trio.fail_after(60):
        async with (
            open_database(path, steps=STEPS, on_commit=on_commit, busy_s=busy_s) as db,
            trio.open_nursery() as nursery,
        ):
            await nursery.start(db.serve)
            try:
                yield db
            finally:
                nursery.cancel_scope.cancel()
