"""One contract, held by every engine: the four CLIs as they were recorded, demo, and a plugin."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ids import EngineId
from takopi.core.ports import Engine, EngineJob, EngineLimits
from takopi.engines.catalog import Catalog, load_catalog
from takopi.engines.registry import Engines, open_engines
from takopi.kit.proc import open_keeper
from tests.engines.asyncio_engine import PLUGIN
from tests.engines.samples import DATA
from tests.kit.processes import MARK, alive, new_mark

# Says a recording line by line, hears whatever it is told, and ends; with "hang" it stays
# when everything is said.
REPLAY = """
import os, sys, threading, time
recording, hang = sys.argv[1], sys.argv[2] == "hang"
def hear():
    while os.read(0, 65536):
        pass
# Not through sys.stdin: a thread inside it keeps the interpreter from ending.
threading.Thread(target=hear, daemon=True).start()
for line in open(recording, "rb"):
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
while hang:
    time.sleep(60)
"""
RECORDED = {
    "claude": "claude/plain.jsonl",
    "codex": "codex/plain.jsonl",
    "opencode": "opencode/plain.jsonl",
    "pi": "pi/plain.jsonl",
}
CLIS = [*RECORDED, "demo"]
ENGINES = [*CLIS, "echo"]


class Person:
    """Allows everything, and answers every question with one word."""

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    async def ask(self, ask: Ask) -> Answer:
        await trio.lowlevel.checkpoint()
        self.asked.append(ask)
        return Answer("allow", replies=tuple(("word",) for _ in ask.questions))


@dataclass
class Bench:
    engines: Engines
    folder: Path
    mark: str

    def engine(self, name: str, *, hang: bool = False) -> Engine:
        """The engine; a CLI says what was recorded of it, and then ends or hangs."""
        if name in RECORDED:
            return self.saying(name, (DATA / RECORDED[name]).read_bytes(), hang=hang)
        if name == "echo":
            return self.engines.get(EngineId(name))
        return self._configured(name, command="")

    def saying(self, name: str, said: bytes, *, hang: bool = False) -> Engine:
        """The engine whose CLI says these bytes and nothing else."""
        recording, replay, script = (self.folder / f"{name}.{end}" for end in ("out", "py", "sh"))
        recording.write_bytes(said)
        replay.write_text(REPLAY, encoding="utf-8")
        words = f"'{sys.executable}' -I -S '{replay}' '{recording}' {'hang' if hang else 'end'}"
        script.write_text(f"#!/bin/sh\nexec {words}\n", encoding="utf-8")
        script.chmod(0o755)
        return self._configured(name, command=str(script))

    def _configured(self, name: str, *, command: str) -> Engine:
        made = self.engines.catalog.settings_types()[name](command=command, env={MARK: self.mark})
        self.engines.configure({name: made})
        return self.engines.get(EngineId(name))

    def job(self, prompt: str) -> EngineJob:
        return EngineJob(prompt, self.folder, limits=EngineLimits(grace_s=0.3))


@asynccontextmanager
async def open_bench(folder: Path) -> AsyncGenerator[Bench, None]:
    own = load_catalog(folder)
    catalog = Catalog({**own.entries, PLUGIN.id: PLUGIN}, own.broken)
    async with (
        open_keeper(on_lost=lambda: None) as keeper,
        open_engines(catalog, keeper=keeper, environ=os.environ) as engines,
    ):
        yield Bench(engines, folder, new_mark())


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench, None]:
    async with open_bench(tmp_path) as bench:
        yield bench


@pytest.mark.parametrize("name", ENGINES)
async def test_one_started_comes_first_and_its_token_is_that_of_the_completed(
    bench: Bench, name: str
) -> None:
    events: list[Event] = []
    with trio.fail_after(60):
        completed = await bench.engine(name).run(bench.job("hello you"), events.append, Person())
    assert completed.ok, completed.error
    assert completed.answer
    started = [event for event in events if isinstance(event, Started)]
    assert len(started) == 1
    assert started[0].resume == completed.resume
    assert all(isinstance(event, Started | Action) for event in events)


@pytest.mark.parametrize("name", ENGINES)
async def test_resume_line_is_read_back_from_the_text_around_it(bench: Bench, name: str) -> None:
    engine = bench.engine(name)
    completed = await engine.run(bench.job("hello"), lambda _event: None, Person())
    assert completed.resume is not None
    line = engine.resume_line(completed.resume)
    assert engine.parse_resume(f"done\n\nctx: z80\n{line}\n") == completed.resume
    others = [other for other in bench.engines if other.id != engine.id]
    assert all(other.parse_resume(line) is None for other in others)


@pytest.mark.parametrize("name", ENGINES)
async def test_cancel_raises_and_leaves_no_process(bench: Bench, name: str) -> None:
    engine = bench.engine(name, hang=True)
    heard = trio.Event()

    async def run() -> None:
        await engine.run(bench.job("hang"), lambda _event: heard.set(), Person())
        raise AssertionError("it was cancelled and came to an end")

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await heard.wait()
            if name != "echo":
                assert alive(bench.mark)
            nursery.cancel_scope.cancel()
    assert alive(bench.mark) == []


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(said=st.binary(max_size=400))
@pytest.mark.parametrize("name", CLIS)
async def test_any_bytes_on_stdout_are_one_completed(
    tmp_path: Path, name: str, said: bytes
) -> None:
    await _one_completed(tmp_path, name, said)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
@pytest.mark.parametrize("name", CLIS)
async def test_recorded_lines_with_anything_in_them_are_one_completed(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    """Lines of its own language, with any value put in place of any other."""
    lines = _recorded_lines(name)
    chosen = data.draw(st.lists(st.sampled_from(lines), max_size=6))
    spoilt = [_spoil(line, data) for line in chosen]
    await _one_completed(tmp_path, name, b"\n".join(spoilt))


def _recorded_lines(name: str) -> list[dict[str, Any]]:
    paths = sorted((DATA / name).glob("*.jsonl"))
    lines = [line for path in paths for line in path.read_bytes().splitlines()]
    return [json.loads(line) for line in lines if len(line) < 4000]


def _spoil(line: dict[str, Any], data: st.DataObject) -> bytes:
    """The line as JSON, with any value in place of one of its own, at any depth."""
    places = list(_places(line))
    spot = data.draw(st.integers(0, len(places) - 1))
    value = data.draw(JSON)
    return json.dumps(_replaced(line, places[spot], value)).encode()


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner: Any = cast("Any", value).items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = enumerate(cast("list[Any]", value))
    for key, item in inner:
        yield from _places(item, (*path, key))


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _replaced(copy[path[0]], path[1:], new)
    return copy


async def _one_completed(folder: Path, name: str, said: bytes) -> None:
    events: list[Event] = []
    with trio.fail_after(60):
        async with open_bench(folder) as bench:
            engine = bench.saying(name, said)
            completed = await engine.run(bench.job("x"), events.append, Person())
    assert isinstance(completed, Completed)
    assert completed.ok or completed.error
    assert sum(isinstance(event, Started) for event in events) <= 1
