"""Plugins are found, reported when they are broken, and cannot break anybody else."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import trio

from takopi.config.schema import EngineSettings
from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import AnswerPort, EngineJob, EngineLimits
from takopi.engines.catalog import Catalog, load_catalog
from takopi.engines.oneway import OneWay
from takopi.engines.plugins import GROUP, Broken, EnginePlugin, load_plugins
from takopi.engines.registry import open_engines
from takopi.engines.spec import EngineSpec, Said
from takopi.kit.proc import Keeper
from tests.engines.asyncio_engine import ECHO, PLUGIN, EchoEngine, EchoSettings

HERE = "tests.engines.test_plugins"
NOT_AN_ENGINE = object()
BAD_NAME = EnginePlugin(EngineId("Bad Name"), EchoEngine, EchoSettings)
CLAUDE_AGAIN = EnginePlugin(EngineId("claude"), EchoEngine, EchoSettings)


class NeedsKey(EngineSettings, frozen=True, kw_only=True):
    key: str


class Trouble:
    """An engine that breaks the contract as it is told to by the prompt."""

    id = EngineId("trouble")

    def __init__(self, settings: EngineSettings) -> None:
        del settings
        self.late: Callable[[Event], None] = lambda _event: None

    def resume_line(self, token: ResumeToken) -> str:
        return token.value

    def parse_resume(self, text: str) -> ResumeToken | None:
        raise RuntimeError(text)

    async def run(
        self, job: EngineJob, emit: Callable[[Event], None], answers: AnswerPort
    ) -> Completed:
        await trio.lowlevel.checkpoint()
        token = ResumeToken(self.id, "t")
        emit(Started(token))
        emit(Started(token))
        self.late = emit
        if job.prompt == "raise":
            raise ValueError("no luck")
        if job.prompt == "ask":
            answer = await answers.ask(Ask("a", "approval"))
            return Completed(ok=True, answer=f"{answer.verdict}: {answer.reason}", resume=token)
        return Completed(ok=True, answer="fine", resume=token)


TROUBLE = EnginePlugin(Trouble.id, Trouble, EngineSettings)
KEYLESS = EnginePlugin(EngineId("keyless"), EchoEngine, NeedsKey)  # pyright: ignore[reportArgumentType] wrong on purpose


class Nobody:
    async def ask(self, ask: Ask) -> Answer:
        raise AssertionError(ask)


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def job(prompt: str, *, grace_s: float = 0.2, ask_s: float = 60) -> EngineJob:
    return EngineJob(prompt, Path("/"), limits=EngineLimits(grace_s=grace_s, ask_s=ask_s))


def test_plugin_is_found_by_its_entry_point() -> None:
    entries, broken = load_plugins((), found=[point("echo", "tests.engines.asyncio_engine:PLUGIN")])
    assert entries == {ECHO: PLUGIN}
    assert broken == ()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("tests.engines.no_such_module:X", "ModuleNotFoundError"),
        (f"{HERE}:NO_SUCH_NAME", "AttributeError"),
        (f"{HERE}:NOT_AN_ENGINE", "neither an EngineSpec nor an EnginePlugin"),
        (f"{HERE}:BAD_NAME", "is no name for an engine"),
        (f"{HERE}:CLAUDE_AGAIN", "there is an engine claude already"),
        (f"{HERE}:KEYLESS", "Missing required argument"),
    ],
)
def test_broken_plugin_is_reported_and_the_others_work(value: str, reason: str) -> None:
    entries, broken = load_plugins(
        {"claude"}, found=[point("a", value), point("b", "tests.engines.asyncio_engine:PLUGIN")]
    )
    assert list(entries) == [ECHO]
    assert [each.name for each in broken] == ["a"]
    assert reason in broken[0].reason


def test_second_plugin_of_the_same_id_is_reported() -> None:
    same = "tests.engines.asyncio_engine:PLUGIN"
    entries, broken = load_plugins((), found=[point("x", same), point("y", same)])
    assert list(entries) == [ECHO]
    assert [each.name for each in broken] == ["y"]


def test_installed_package_brings_its_engine_and_its_table(tmp_path: Path) -> None:
    """As pip would leave it: a module, and metadata with an entry point beside it."""
    module = tmp_path / "site" / "nice_engine.py"
    metadata = tmp_path / "site" / "nice_engine-1.0.dist-info"
    metadata.mkdir(parents=True)
    module.write_text("from tests.engines.asyncio_engine import PLUGIN\n", encoding="utf-8")
    (metadata / "METADATA").write_text("Name: nice-engine\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(
        f"[{GROUP}]\nnice = nice_engine:PLUGIN\n", encoding="utf-8"
    )
    asked = (
        "from pathlib import Path\n"
        "from takopi.engines.catalog import load_catalog\n"
        "catalog = load_catalog(Path('/nowhere'))\n"
        "print(catalog.settings_types()['echo']().greeting, catalog.broken)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, "PYTHONPATH": f"{root}:{tmp_path / 'site'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "echo ()\n"


async def test_plugin_gets_the_settings_of_its_table(keeper: Keeper, tmp_path: Path) -> None:
    catalog = Catalog({ECHO: PLUGIN}, ())
    async with open_engines(catalog, keeper=keeper, environ={}) as engines:
        engines.configure({"echo": EchoSettings(greeting="hi")})
        completed = await engines.get(ECHO).run(job("you"), lambda _event: None, Nobody())
    assert completed.answer == "hi: you"


async def test_asyncio_engine_asks_a_person_of_trio(keeper: Keeper) -> None:
    class Person:
        async def ask(self, ask: Ask) -> Answer:
            await trio.lowlevel.checkpoint()
            return Answer("allow", replies=((ask.questions[0].text,),))

    async with open_engines(Catalog({ECHO: PLUGIN}, ()), keeper=keeper, environ={}) as engines:
        completed = await engines.get(ECHO).run(job("x ask"), lambda _event: None, Person())
    assert completed.answer == "echo: x which?"


async def test_two_asyncio_runs_go_on_at_the_same_time(keeper: Keeper) -> None:
    heard: list[str] = []
    async with (
        open_engines(Catalog({ECHO: PLUGIN}, ()), keeper=keeper, environ={}) as engines,
        trio.open_nursery() as nursery,
    ):
        engine = engines.get(ECHO)

        async def run(prompt: str) -> None:
            completed = await engine.run(job(prompt), lambda _event: None, Nobody())
            heard.append(completed.answer)

        nursery.start_soon(run, "hang")
        with trio.fail_after(30):
            await run("second")
        nursery.cancel_scope.cancel()
    assert heard == ["echo: second"]


async def test_asyncio_engine_that_swallows_a_cancel_is_told_again(keeper: Keeper) -> None:
    cancels: list[int] = []
    swallowing = trio.Event()

    class Deaf(EchoEngine):
        async def run(
            self, job: EngineJob, emit: Callable[[Event], None], answers: AnswerPort
        ) -> Completed:
            del job, emit, answers
            while len(cancels) < 2:
                with suppress(asyncio.CancelledError):
                    swallowing.set()
                    await asyncio.Event().wait()
                cancels.append(1)
            return Completed(ok=True)

    plugin = EnginePlugin(ECHO, Deaf, EchoSettings, flavor="asyncio")
    async with open_engines(Catalog({ECHO: plugin}, ()), keeper=keeper, environ={}) as engines:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(engines.get(ECHO).run, job("x", grace_s=1), ignore, Nobody())
                await swallowing.wait()
                nursery.cancel_scope.cancel()
    assert len(cancels) == 2


def ignore(_event: Event) -> None:
    """What the engine says is of no interest here."""


async def test_error_of_a_plugin_is_its_runs_completed(keeper: Keeper) -> None:
    catalog = Catalog({Trouble.id: TROUBLE}, ())
    async with open_engines(catalog, keeper=keeper, environ={}) as engines:
        completed = await engines.get(Trouble.id).run(job("raise"), ignore, Nobody())
    assert not completed.ok
    assert completed.error == "the engine trouble failed: ValueError: no luck"
    assert completed.resume == ResumeToken(Trouble.id, "t")


async def test_ask_of_a_plugin_that_nobody_answers_is_denied(keeper: Keeper) -> None:
    class Absent:
        async def ask(self, ask: Ask) -> Answer:
            await trio.sleep_forever()
            raise AssertionError(ask)

    catalog = Catalog({Trouble.id: TROUBLE}, ())
    async with open_engines(catalog, keeper=keeper, environ={}) as engines:
        with trio.fail_after(30):
            asking = job("ask", ask_s=0.1)
            completed = await engines.get(Trouble.id).run(asking, ignore, Absent())
    assert completed.answer == "deny: deny, nobody answered"


async def test_plugin_that_breaks_the_contract_is_held_to_it(keeper: Keeper) -> None:
    made: list[Trouble] = []

    def make(settings: EngineSettings) -> Trouble:
        made.append(Trouble(settings))
        return made[-1]

    events: list[Event] = []
    catalog = Catalog({Trouble.id: EnginePlugin(Trouble.id, make, EngineSettings)}, ())
    async with open_engines(catalog, keeper=keeper, environ={}) as engines:
        engine = engines.get(Trouble.id)
        await engine.run(job("fine"), events.append, Nobody())
        made[-1].late(Action("late", "note", "too late"))
        assert engine.parse_resume("any text") is None
    assert [type(event) for event in events] == [Started]


class Careless(OneWay):
    """A dialect with a bug: it takes every line for what it hopes for."""

    def opening(self) -> bytes:
        return b""

    def read(self, line: bytes) -> list[Said]:
        said = json.loads(line)
        return [Started(ResumeToken(Trouble.id, said["thread"]))]

    def end(self, code: int, stderr: str) -> Completed:
        raise AssertionError((code, stderr))


async def test_error_of_a_plugins_dialect_is_its_runs_completed(keeper: Keeper) -> None:
    says = """echo '{"thread": "t"}'; echo '{"other": 1}'"""
    careless = EngineSpec(
        id=Trouble.id,
        settings_type=EngineSettings,
        argv=lambda _settings, _job: ["-c", says],
        dialect=lambda _settings, _job: Careless(),
        resume_words=("trouble",),
        install="",
        login="",
        oldest=(1,),
        program=("sh",),
    )
    catalog = Catalog({Trouble.id: careless}, ())
    async with open_engines(catalog, keeper=keeper, environ=os.environ) as engines:
        completed = await engines.get(Trouble.id).run(job("x"), ignore, Nobody())
    assert completed.error == "the engine trouble failed: KeyError: 'thread'"
    assert completed.resume == ResumeToken(Trouble.id, "t")


async def test_plugin_that_cannot_be_made_is_reported(keeper: Keeper) -> None:
    def make(settings: EngineSettings) -> Trouble:
        raise OSError("no port free")

    plugin = EnginePlugin(Trouble.id, make, EngineSettings)
    async with open_engines(
        Catalog({Trouble.id: plugin}, ()), keeper=keeper, environ={}
    ) as engines:
        assert engines.broken == (Broken("trouble", "OSError: no port free"),)
        assert list(engines) == []


async def test_asyncio_is_not_imported_without_a_plugin_that_needs_it(tmp_path: Path) -> None:
    catalog = load_catalog(tmp_path)
    assert not any(isinstance(entry, EnginePlugin) for entry in catalog.entries.values())
    code = (
        "import sys, trio\n"
        "from pathlib import Path\n"
        "from takopi.engines.catalog import load_catalog\n"
        "from takopi.engines.registry import open_engines\n"
        "from takopi.kit.proc import open_keeper\n"
        "async def main():\n"
        "    async with open_keeper(on_lost=lambda: None) as keeper:\n"
        "        async with open_engines(load_catalog(Path('/x')), keeper=keeper, environ={}):\n"
        "            print('trio_asyncio' in sys.modules)\n"
        "trio.run(main)\n"
    )
    done = await trio.run_process([sys.executable, "-c", code], capture_stdout=True)
    assert done.stdout == b"False\n"
