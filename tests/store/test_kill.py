from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from takopi.store.opening import open_file
from takopi.store.schema import STEPS
from tests.faults.promises import LONG
from tests.store import writer_child
from tests.store.writer_child import story_steps

KILLS = 2000 if LONG else 50


class Writer:
    """The process that forks the processes that are killed."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._rest = b""

    async def begin(self, job: str, path: Path, *, number: int = 0) -> int:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(f"{job} {path} {number}\n".encode())
        word, pid = await self.line()
        assert word == "pid"
        return int(pid)

    async def line(self) -> tuple[str, str]:
        assert self._process.stdout is not None
        while b"\n" not in self._rest:
            chunk = await self._process.stdout.receive_some()
            assert chunk, "the writer is gone"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        word, _, rest = line.decode().partition(" ")
        return word, rest

    async def lines_to_the_end(self) -> list[tuple[str, str]]:
        lines: list[tuple[str, str]] = []
        while not lines or lines[-1][0] != "dead":
            lines.append(await self.line())
        return lines


@asynccontextmanager
async def open_writer() -> AsyncGenerator[Writer]:
    process = await trio.lowlevel.open_process(
        [sys.executable, writer_child.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        yield Writer(process)
    finally:
        process.kill()
        with trio.move_on_after(10, shield=True):
            await process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                await stream.aclose()


def dump(path: Path) -> list[str]:
    opened = open_file(path, steps=STEPS, busy_s=5)
    opened.reader.close()
    with closing(opened.writer) as conn:
        assert opened.set_aside is None
        conn.row_factory = None
        return list(conn.iterdump())


def column(conn: sqlite3.Connection, sql: str) -> list[int]:
    return [row[0] for row in conn.execute(sql)]


@dataclass
class Told:
    """What a writer was told is on the disk."""

    offset: int = 0
    begun: set[int] = field(default_factory=set[int])
    finished: set[int] = field(default_factory=set[int])

    def hear(self, word: str, rest: str) -> None:
        match word:
            case "arrived":
                self.offset = int(rest)
            case "begun":
                self.begun.add(int(rest))
            case "finished":
                self.finished.add(int(rest))
            case _:
                assert (word, rest) == ("dead", "-9")


def check(path: Path, told: Told) -> None:
    """Nothing that was confirmed is missing, nothing is there twice or by half."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as conn:
        numbers = column(conn, "SELECT update_id FROM inbox ORDER BY id")
        assert numbers == list(range(len(numbers)))
        (offset,) = column(conn, "SELECT next_offset FROM offsets") or [0]
        assert offset == len(numbers)
        assert offset >= told.offset

        of_runs = column(conn, "SELECT inbox_id FROM runs")
        assert len(of_runs) == len(set(of_runs))
        assert told.begun <= set(of_runs)
        assert set(of_runs) == set(column(conn, "SELECT id FROM inbox WHERE state <> 'new'"))

        done = column(conn, "SELECT id FROM inbox WHERE state = 'done' ORDER BY id")
        assert told.finished <= set(done)
        assert done == column(conn, "SELECT inbox_id FROM runs WHERE state = 'done' ORDER BY 1")
        answered = "SELECT inbox_id FROM outbox JOIN runs ON runs.id = run_id ORDER BY 1"
        assert done == column(conn, answered)


async def test_f1_no_kill_loses_or_doubles_what_was_confirmed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    told = Told()
    with trio.fail_after(3600 if LONG else 120):
        async with open_writer() as writer:
            for _ in range(KILLS):
                pid = await writer.begin("busy", path)
                # Some kills come while the file is being opened, most in full swing.
                for _ in range(moments.choice([0, 0, 5, 20, 60])):
                    told.hear(*await writer.line())
                await trio.sleep(moments.uniform(0, 0.01))
                os.kill(pid, signal.SIGKILL)
                for line in await writer.lines_to_the_end():
                    told.hear(*line)
                # Killed before its tables were made, it has confirmed nothing either.
                if told.offset:
                    check(path, told)

    assert told.finished
    dump(path)


@pytest.mark.parametrize("commit", range(1, len(story_steps()) + 1))
async def test_f2_a_kill_in_a_commit_leaves_exactly_what_was_committed(
    tmp_path: Path, commit: int
) -> None:
    killed, whole = tmp_path / "killed.db", tmp_path / "whole.db"
    with trio.fail_after(120):
        async with open_writer() as writer:
            await writer.begin("story", killed, number=commit)
            lines = await writer.lines_to_the_end()

    # The last commit reached the disk, and nobody was told of it.
    assert lines == [*(("told", str(n)) for n in range(1, commit)), ("dead", "-9")]
    opened = open_file(whole, steps=STEPS, busy_s=5)
    opened.reader.close()
    with closing(opened.writer) as conn:
        for step in story_steps()[:commit]:
            step(conn)
    assert dump(killed) == dump(whole)
