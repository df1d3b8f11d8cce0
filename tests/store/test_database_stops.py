from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from takopi.core.errors import StoreFailed
from takopi.store.database import Database, open_database
from tests.store.served import STEPS, Gate, insert, served, values


async def test_a_stop_finishes_the_batch_in_hand_and_refuses_the_rest(path: Path) -> None:
    gate = Gate(1)
    told: list[object] = []
    with trio.fail_after(60):
        async with open_database(path, steps=STEPS) as db, trio.open_nursery() as nursery:

            async def write(change: Callable[[sqlite3.Connection], int]) -> None:
                try:
                    told.append(await db.write(change))
                except StoreFailed as error:
                    told.append(error.what)

            stop = trio.CancelScope()

            async def serve(
                *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
            ) -> None:
                with stop:
                    async with trio.open_nursery() as service:
                        await service.start(db.serve)
                        task_status.started()

            await nursery.start(serve)
            nursery.start_soon(write, gate)
            await gate.reached()
            nursery.start_soon(write, insert(2))
            await wait_all_tasks_blocked()
            stop.cancel()
            await wait_all_tasks_blocked()
            with pytest.raises(StoreFailed, match="the store has stopped"):
                await db.write(insert(3))
            gate.go.set()

    assert told == [1, "the store stopped before this was written"]
    async with served(path) as db:
        assert await db.read(values) == [1]


async def test_a_stop_does_not_wait_for_a_disk_that_hangs(path: Path) -> None:
    gate = Gate(1)
    told: list[str] = []
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            async with open_database(path, steps=STEPS, stop_s=0.05) as db:

                async def write() -> None:
                    with pytest.raises(StoreFailed) as caught:
                        await db.write(gate)
                    told.append(caught.value.what)

                async with trio.open_nursery() as service:
                    await service.start(db.serve)
                    nursery.start_soon(write)
                    await gate.reached()
                    service.cancel_scope.cancel()
            assert not gate.go.is_set()
            gate.go.set()

    assert told == ["the disk did not answer: this may be written, or not"]


async def test_a_disk_that_answers_after_the_close_still_gets_the_write_whole(path: Path) -> None:
    gate, committed = Gate(1), threading.Event()

    async def write(db: Database) -> None:
        with pytest.raises(StoreFailed):
            await db.write(gate)

    with trio.fail_after(60):
        async with (
            open_database(path, steps=STEPS, on_commit=committed.set, stop_s=0.05) as db,
            trio.open_nursery() as nursery,
            trio.open_nursery() as service,
        ):
            await service.start(db.serve)
            nursery.start_soon(write, db)
            await gate.reached()
            service.cancel_scope.cancel()
        gate.go.set()
        assert await trio.to_thread.run_sync(committed.wait, 30)
    async with served(path) as db:
        assert db.set_aside is None
        assert await db.read(values) == [1]


async def test_a_store_that_is_not_served_refuses_at_once(path: Path) -> None:
    with trio.fail_after(60):
        async with open_database(path, steps=STEPS) as db:
            with pytest.raises(StoreFailed, match="not being served yet"):
                await db.write(insert(1))
            assert await db.read(values) == []
            async with trio.open_nursery() as nursery:
                await nursery.start(db.serve)
                with pytest.raises(RuntimeError, match="already"):
                    await db.serve()
                nursery.cancel_scope.cancel()
            with pytest.raises(StoreFailed, match="has stopped"):
                await db.write(insert(1))
        with pytest.raises(StoreFailed, match="is closed"):
            await db.read(values)


async def test_a_closed_store_leaves_one_file(path: Path) -> None:
    async with served(path) as db:
        await db.write(insert(1))

    assert [entry.name for entry in path.parent.iterdir()] == ["state.db"]
