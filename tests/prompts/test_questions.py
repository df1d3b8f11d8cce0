"""What a model is asked once is built like every other prompt."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import trio

from takopi.interview.questions import SYSTEM, Asked, batch_prompt, next_batch
from takopi.prompts.aggregator import get_prompt_aggregator
from takopi.prompts.components import ClosingPromptComponent
from takopi.prompts.request import PromptContext, PromptSection
from takopi.turns.layout import find_root, find_turn
from takopi.turns.service import Rules, create_session, plan_turn
from tests.interview.given import fresh


class Always(ClosingPromptComponent):
    """Stands at the end of every prompt, as a plugin's component might."""

    def build(self, context: PromptContext) -> PromptSection | None:
        del context
        return PromptSection(self.name, "Mind the kelp.")


class Model:
    """Notes what it is asked; has no questions of its own."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def ask(self, system: str, user: str, *, schema: Any = None) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked.append((system, user))
        return "# Nothing to do\n" if schema is None else Asked(done=True)


@pytest.fixture
def always() -> Generator[None]:
    """A component that is part of every prompt, for one test."""
    get_prompt_aggregator().register(Always())
    yield
    get_prompt_aggregator().register(ClosingPromptComponent())


async def test_question_of_an_interview_is_sent_as_it_is_written() -> None:
    model = Model()
    await next_batch(model, fresh(), max_rounds=3)
    assert model.asked == [(SYSTEM, batch_prompt(fresh(), max_rounds=3))]


@pytest.mark.usefixtures("always")
async def test_component_is_part_of_an_interviews_question() -> None:
    model = Model()
    await next_batch(model, fresh(), max_rounds=3)
    ((_, user),) = model.asked
    assert user.startswith(f"<message>\n{batch_prompt(fresh(), max_rounds=3)}\n</message>")
    assert user.endswith("<closing>\nMind the kelp.\n</closing>")


async def test_plan_of_a_turn_is_asked_for_as_it_is_written(tmp_path: Path) -> None:
    asked = await plan(tmp_path)
    assert asked.endswith("\n## User Request\n\ncount the arms\n")
    assert asked.startswith("# Agent Invocation Payload\n")


@pytest.mark.usefixtures("always")
async def test_component_is_part_of_what_a_turn_is_planned_with(tmp_path: Path) -> None:
    asked = await plan(tmp_path)
    assert asked.endswith("<closing>\nMind the kelp.\n</closing>")


async def plan(folder: Path) -> str:
    """What a model is asked for the plan of a turn."""
    model = Model()
    create_session(find_root(folder), "arms")
    turn = find_turn(folder, session="arms")
    await plan_turn(turn, "count the arms", ask=model.ask, rules=Rules(), environ={})
    ((_, user),) = model.asked
    return user
