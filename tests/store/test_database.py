from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from takopi.core.errors import Refused, StoreFailed, StoreUnfit
from takopi.store import inbox, ledger
from takopi.store.database import open_database
from takopi.store.ledger import NewRun
from tests.store.rows import CHAT, CLAUDE, SOURCE, receive
from tests.store.served import STEPS, Gate, insert, served, values


async def test_a_confirmed_change_is_there_for_every_reader_and_after_a_restart(
    path: Path,
) -> None:
    async with served(path) as db:
        assert await db.write(insert(1)) == 1
        assert await db.read(values) == [1]
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as other:
            assert other.execute("SELECT x FROM t").fetchall() == [(1,)]
        other.close()
    async with served(path) as db:
        assert await db.read(values) == [1]


async def test_nobody_is_told_before_the_commit(path: Path) -> None:
    seen: list[str] = []
    async with served(path, on_commit=lambda: seen.append("commit")) as db:
        for number in range(3):
            await db.write(insert(number))
            seen.append("told")

    assert seen == ["commit", "told"] * 3


async def test_changes_that_wait_for_a_commit_share_the_next_in_order(path: Path) -> None:
    commits: list[int] = []
    order: list[int] = []
    gate = Gate(0)

    def ordered(number: int) -> Callable[[sqlite3.Connection], int]:
        def change(conn: sqlite3.Connection) -> int:
            order.append(number)
            return insert(number)(conn)

        return change

    async with served(path, on_commit=lambda: commits.append(len(order))) as db:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(db.write, gate)
            await gate.reached()
            for number in range(1, 21):
                nursery.start_soon(db.write, ordered(number))
                await wait_all_tasks_blocked()
            gate.go.set()
        assert await db.read(values) == list(range(21))

    assert commits == [0, 20]
    assert order == list(range(1, 21))


async def test_a_change_that_fails_undoes_itself_and_spoils_no_other(path: Path) -> None:
    gate = Gate(0)
    results: dict[str, object] = {}

    def broken(conn: sqlite3.Connection) -> None:
        insert(7)(conn)
        raise Refused("no")

    async with served(path) as db:

        async def attempt(name: str, change: Callable[[sqlite3.Connection], object]) -> None:
            try:
                results[name] = await db.write(change)
            except (Refused, sqlite3.IntegrityError) as error:
                results[name] = type(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(db.write, gate)
            await gate.reached()
            nursery.start_soon(attempt, "before", insert(1))
            nursery.start_soon(attempt, "broken", broken)
            nursery.start_soon(attempt, "double", insert(0))
            nursery.start_soon(attempt, "after", insert(2))
            await wait_all_tasks_blocked()
            gate.go.set()
        assert results == {
            "before": 1,
            "broken": Refused,
            "double": sqlite3.IntegrityError,
            "after": 2,
        }
        assert await db.read(values) == [0, 1, 2]


async def test_several_writes_of_one_change_are_made_together_or_not_at_all(path: Path) -> None:
    def take_and_run(conn: sqlite3.Connection) -> None:
        (got,) = inbox.pending(conn)
        inbox.take(conn, got.id)
        ledger.add(conn, NewRun(CHAT, "x", CLAUDE, inbox_id=got.id), now_ms=1)
        inbox.settle(conn, got.id, "done", now_ms=1)
        raise ValueError("changed my mind")

    with trio.fail_after(60):
        async with open_database(path) as db, trio.open_nursery() as nursery:
            await nursery.start(db.serve)
            await db.write(lambda conn: receive(conn, 7))
            with pytest.raises(ValueError, match="changed my mind"):
                await db.write(take_and_run)
            assert len(await db.read(inbox.pending)) == 1
            assert await db.read(lambda conn: ledger.last(conn, 5)) == ()
            assert await db.read(lambda conn: inbox.offset(conn, SOURCE)) == 8
            nursery.cancel_scope.cancel()


async def test_a_caller_that_gives_up_in_the_queue_takes_its_change_along(path: Path) -> None:
    gate = Gate(0)
    async with served(path) as db:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(db.write, gate)
            await gate.reached()
            async with trio.open_nursery() as waiting:
                waiting.start_soon(db.write, insert(1))
                await wait_all_tasks_blocked()
                waiting.cancel_scope.cancel()
            nursery.start_soon(db.write, insert(2))
            await wait_all_tasks_blocked()
            gate.go.set()
        assert await db.read(values) == [0, 2]


async def test_a_caller_that_was_cancelled_before_changes_nothing(path: Path) -> None:
    async with served(path) as db:
        with trio.CancelScope() as scope:
            scope.cancel()
            await db.write(insert(1))
        assert scope.cancelled_caught
        assert await db.read(values) == []


async def test_a_change_that_has_begun_is_made_and_its_caller_told(path: Path) -> None:
    gate = Gate(1)
    told: list[int] = []
    async with served(path) as db:
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                told.append(await db.write(gate))

            nursery.start_soon(write)
            await gate.reached()
            nursery.cancel_scope.cancel()
            gate.go.set()
        assert told == [1]
        assert await db.read(values) == [1]


async def test_a_read_sees_one_state_while_others_write(path: Path) -> None:
    inside, go = threading.Event(), threading.Event()
    looks: list[list[int]] = []

    def look(conn: sqlite3.Connection) -> None:
        looks.append(values(conn))
        inside.set()
        go.wait(30)
        looks.append(values(conn))

    async with served(path) as db:
        await db.write(insert(1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(db.read, look)
            await trio.to_thread.run_sync(inside.wait, 30)
            await db.write(insert(2))
            go.set()
        assert looks == [[1], [1]]
        assert await db.read(values) == [1, 2]


async def test_many_readers_at_once_are_not_confused(path: Path) -> None:
    seen: list[list[int]] = []
    async with served(path) as db:

        async def look() -> None:
            seen.append(await db.read(values))

        await db.write(insert(1))
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(look)

    assert seen == [[1]] * 50


async def test_a_read_cannot_write(path: Path) -> None:
    async with served(path) as db:
        with pytest.raises(StoreFailed, match="cannot be opened or written"):
            await db.read(insert(1))
        assert await db.read(values) == []


async def test_a_change_that_ends_the_transaction_confirms_nothing(path: Path) -> None:
    async with served(path) as db:
        with pytest.raises(StoreFailed, match="nothing was written"):
            await db.write(lambda conn: conn.rollback())
        await db.write(insert(1))
        assert await db.read(values) == [1]


async def test_a_commit_that_fails_confirms_nothing_and_the_next_one_is_made(path: Path) -> None:
    def point_to_nothing(conn: sqlite3.Connection) -> None:
        conn.execute("INSERT INTO child VALUES (77)")

    child = "CREATE TABLE child (x INTEGER REFERENCES t (x) DEFERRABLE INITIALLY DEFERRED) STRICT"
    with trio.fail_after(60):
        async with (
            open_database(path, steps=(*STEPS, (child,))) as db,
            trio.open_nursery() as nursery,
        ):
            await nursery.start(db.serve)
            with pytest.raises(StoreFailed, match="FOREIGN KEY constraint failed"):
                await db.write(point_to_nothing)
            await db.write(insert(1))
            assert await db.read(values) == [1]
            nursery.cancel_scope.cancel()


async def test_a_lock_of_another_process_fails_the_write_and_not_the_store(path: Path) -> None:
    async with served(path, busy_s=0.05) as db:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match="another process holds"):
            await db.write(insert(1))
        assert await db.read(values) == []
        other.execute("ROLLBACK")
        other.close()
        await db.write(insert(1))
        assert await db.read(values) == [1]


async def test_damage_that_shows_later_says_that_this_store_is_done(path: Path) -> None:
    async with served(path) as db:
        for number in range(0, 20000, 100):
            await db.write(
                lambda conn, first=number: conn.executemany(
                    "INSERT INTO t VALUES (?)", ((first + n,) for n in range(100))
                )
            )
        await db.write(lambda conn: conn.execute("PRAGMA shrink_memory"))
    async with served(path) as db:
        file = trio.Path(path)
        head = (await file.read_bytes())[:8192]
        await file.write_bytes(head + b"\xff" * 500_000)
        with pytest.raises(StoreUnfit, match="is damaged") as caught:
            await db.write(lambda conn: conn.execute("SELECT sum(x) FROM t").fetchone())
        assert "restart takopi" in caught.value.way_out
    async with open_database(path, steps=STEPS) as db:
        assert db.set_aside is not None


async def test_f15_a_full_disk_confirms_nothing_and_passes(path: Path) -> None:
    """SQLite's own page limit stands for the disk."""

    def big(conn: sqlite3.Connection) -> None:
        conn.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(100, 5000)))

    async with served(path) as db:
        await db.write(insert(1))
        await db.write(lambda conn: conn.execute("PRAGMA max_page_count = 1").fetchall())
        with pytest.raises(StoreFailed, match="no space left") as caught:
            await db.write(big)
        assert "free some space" in caught.value.way_out
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        assert await db.read(values) == [1]

        await db.write(lambda conn: conn.execute("PRAGMA max_page_count = 100000").fetchall())
        await db.write(big)
        assert len(await db.read(values)) == 4901
