"""takopi's own engines around the real CLIs, and a person who answers what they ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trio

from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob, EngineLimits
from takopi.engines.claude.spec import SPEC as CLAUDE
from takopi.engines.codex.spec import SPEC as CODEX
from takopi.engines.opencode.spec import SPEC as OPENCODE
from takopi.engines.pi.spec import SPEC as PI
from takopi.engines.pump import CliEngine
from takopi.engines.spec import EngineSpec
from takopi.kit.proc import Keeper
from tests.model.server import Model, serve_model
from tests.real.clis import RUN_S, Cli
from tests.real.scripts import TRAITS, Case, script_of

SPECS: Mapping[str, EngineSpec[Any]] = {spec.id: spec for spec in (CLAUDE, CODEX, OPENCODE, PI)}
MakeCli = Callable[[str, str], Cli]


class Person:
    """Answers every ask with `answer`, or not at all."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.asked: list[Ask] = []

    async def ask(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        if self.answer is None:
            await trio.sleep_forever()
            raise AssertionError
        await trio.lowlevel.checkpoint()
        return self.answer


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run told, and what it came to."""

    completed: Completed
    events: list[Event]
    model: Model

    @property
    def started(self) -> Started:
        (started,) = [event for event in self.events if isinstance(event, Started)]
        return started

    def actions(self, kind: str) -> list[Action]:
        return [event for event in self.events if isinstance(event, Action) and event.kind == kind]


@dataclass(frozen=True, slots=True)
class Player:
    """Plays cases through one engine, each with a scripted model of its own."""

    engine: str
    make_cli: MakeCli
    keeper: Keeper
    table: Mapping[str, object] = field(default_factory=dict[str, object])
    environ: Mapping[str, str] = field(default_factory=dict[str, str])

    def prepare(self, model: Model, /, **table: object) -> tuple[CliEngine[Any], Cli]:
        """The engine as a config with these keys would make it."""
        cli = self.make_cli(self.engine, model.base_url)
        spec = SPECS[self.engine]
        keys: dict[str, object] = {"command": str(cli.program), **self.table, **table}
        if self.engine == "claude":
            keys["use_api_billing"] = True
        settings = msgspec.convert(keys, spec.settings_type)
        return CliEngine(spec, settings, self.keeper, {**cli.env, **self.environ}), cli

    async def play(
        self,
        case: Case,
        *,
        person: Person | None = None,
        resume: ResumeToken | None = None,
        system: str | None = None,
        limits: EngineLimits | None = None,
        folder: str = "project",
        **table: object,
    ) -> Ran:
        """Run `case` to its end, in the `folder` beside the CLI's home."""
        events: list[Event] = []
        with trio.fail_after(RUN_S):
            async with serve_model(script_of(case)) as model:
                engine, cli = self.prepare(model, **table)
                cwd = cli.cwd.with_name(folder)
                job = EngineJob(case.prompt, cwd, system, resume, limits=limits or EngineLimits())
                completed = await engine.run(job, events.append, person or Person())
        return Ran(completed, events, model)


def free_hand(engine: str, make_cli: MakeCli, keeper: Keeper) -> Player:
    """An engine that may use its tools unasked."""
    return Player(engine, make_cli, keeper, TRAITS[engine].table)
