"""A writer that is killed: imports once, then forks a process for every line `<job> <path> <k>`.

`busy`: many tasks write until the kill comes, and print what was confirmed to them.
`story`: one message from its arrival to its answer, killed in the commit number k.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from takopi.core.ids import EngineId, MessageRef, ResumeToken, RunId, Scope
from takopi.store import inbox, ledger, outbox, threads
from takopi.store.database import Database, open_database
from takopi.store.inbox import InboxId, Update

SOURCE = "telegram:1"
CHAT = Scope("telegram", 100)
CLAUDE = EngineId("claude")
BATCH = 3


def say(*words: object) -> None:
    # One call of write(2) a line: whole lines, and none is held back when the kill comes.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def arrive(conn: sqlite3.Connection, first: int) -> tuple[inbox.Received, ...]:
    updates = [Update(first + n, CHAT.chat_id, b"x" * 500) for n in range(BATCH)]
    return inbox.record(conn, SOURCE, updates=updates, next_offset=first + BATCH, now_ms=1)


def begin(conn: sqlite3.Connection, inbox_id: InboxId) -> RunId | None:
    if not inbox.take(conn, inbox_id):
        return None
    new = ledger.NewRun(CHAT, "x", CLAUDE, inbox_id=inbox_id)
    run = ledger.add(conn, new, now_ms=1)
    ledger.start(conn, run.id, cwd=Path("/"), now_ms=1)
    return run.id


def finish(conn: sqlite3.Connection, inbox_id: InboxId, run_id: RunId) -> None:
    ledger.end(conn, run_id, "done", now_ms=2, answer="y" * 500)
    inbox.settle(conn, inbox_id, "done", now_ms=2)
    outbox.add(
        conn, CHAT, kind="answer", payload=b"y", now_ms=2, run_id=run_id, dedupe_key=f"{run_id}"
    )


def recover(conn: sqlite3.Connection) -> tuple[inbox.Received, ...]:
    ledger.recover(conn, now_ms=3)
    outbox.recover(conn)
    for received in inbox.unfinished(conn):
        inbox.settle(conn, received.id, "reported", now_ms=3)
    return inbox.pending(conn)


async def handle(db: Database, jobs: trio.MemoryReceiveChannel[InboxId]) -> None:
    async for inbox_id in jobs:
        run_id = await db.write(lambda conn, one=inbox_id: begin(conn, one))
        if run_id is None:
            say("twice", inbox_id)
            continue
        say("begun", inbox_id)
        await db.write(lambda conn, one=inbox_id, run=run_id: finish(conn, one, run))
        say("finished", inbox_id)


async def busy(path: Path) -> None:
    async with open_database(path) as db, trio.open_nursery() as nursery:
        if db.set_aside is not None:
            say("damaged")
        await nursery.start(db.serve)
        todo, jobs = trio.open_memory_channel[InboxId](8)
        for _ in range(4):
            nursery.start_soon(handle, db, jobs)
        for received in await db.write(recover):
            await todo.send(received.id)
        first = await db.read(lambda conn: inbox.offset(conn, SOURCE)) or 0
        while True:
            fresh = await db.write(lambda conn, number=first: arrive(conn, number))
            first += BATCH
            say("arrived", first)
            for received in fresh:
                await todo.send(received.id)


def story_steps() -> list[Callable[[sqlite3.Connection], object]]:
    one, run, send = InboxId(1), RunId(1), outbox.SendId(1)
    return [
        lambda conn: arrive(conn, 0),
        lambda conn: begin(conn, one),
        lambda conn: ledger.set_progress(conn, run, MessageRef("telegram", 100, 7)),
        lambda conn: ledger.set_thread(conn, run, ResumeToken(CLAUDE, "abc"), now_ms=2),
        lambda conn: finish(conn, one, run),
        lambda conn: outbox.take_next(conn, CHAT, now_ms=3),
        lambda conn: outbox.confirm(conn, send, message_id=8, now_ms=4),
        lambda conn: threads.thread_of(conn, MessageRef("telegram", 100, 8)),
    ]


async def story(path: Path, *, kill_at: int) -> None:
    commits = 0

    def on_commit() -> None:
        nonlocal commits
        commits += 1
        if commits == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_database(path, on_commit=on_commit) as db, trio.open_nursery() as nursery:
        await nursery.start(db.serve)
        for number, step in enumerate(story_steps(), 1):
            await db.write(step)
            say("told", number)
        nursery.cancel_scope.cancel()


def main() -> None:
    for line in sys.stdin:
        job, path, number = line.rsplit(maxsplit=2)
        pid = os.fork()
        if pid == 0:
            say("pid", os.getpid())
            if job == "busy":
                trio.run(busy, Path(path))
            else:
                trio.run(partial(story, Path(path), kill_at=int(number)))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        say("dead", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
