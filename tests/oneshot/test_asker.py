from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
import pytest
import trio
from msgspec import Meta

from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import Refused, UnusableAnswer
from takopi.kit.proc import Keeper
from takopi.oneshot.asker import QUOTED_CHARS
from takopi.oneshot.choose import open_oneshot
from takopi.oneshot.cli import Claude
from takopi.oneshot.port import Oneshot
from tests.model.script import Rule, Say, Script
from tests.model.server import Model, serve_model

WAIT_S = 60


class Arms(msgspec.Struct, frozen=True):
    """How many there are."""

    count: Annotated[int, Meta(ge=1)]


@asynccontextmanager
async def asking(keeper: Keeper, script: Script) -> AsyncGenerator[tuple[Oneshot, Model]]:
    with trio.fail_after(WAIT_S):
        async with (
            serve_model(script) as model,
            open_oneshot(
                Settings(base_url=model.base_url),
                keeper,
                claude=Claude(),
                environ={"ANTHROPIC_API_KEY": "key"},
                grace_s=1,
            ) as oneshot,
        ):
            yield oneshot, model


async def test_without_a_schema_the_answer_is_its_text_as_it_is(keeper: Keeper) -> None:
    async with asking(keeper, [Rule("^hello$", Say(" eight\n arms "))]) as (oneshot, model):
        assert await oneshot.ask("be brief", "hello") == " eight\n arms "
    assert model.conversations[0].system == "be brief"


async def test_with_a_schema_the_answer_is_a_value_of_it(keeper: Keeper) -> None:
    async with asking(keeper, [Rule("^hello$", Say('{"count": 8}'))]) as (oneshot, model):
        assert await oneshot.ask("be brief", "hello", schema=Arms) == Arms(8)
    system = model.conversations[0].system
    assert system.startswith("be brief\n\nAnswer with one JSON value")
    assert '"minimum":1' in system


async def test_bad_json_is_asked_for_once_more_with_the_answer_and_the_reason(
    keeper: Keeper,
) -> None:
    script = [Rule("^hello$", Say('{"count": 0}')), Rule("cannot be used", Say('{"count": 8}'))]
    async with asking(keeper, script) as (oneshot, model):
        assert await oneshot.ask("be brief", "hello", schema=Arms) == Arms(8)
    first, second = model.conversations
    assert second.latest is not None
    assert second.latest.text.startswith('hello\n\nYou have answered this once:\n{"count": 0}\n')
    assert "Expected `int` >= 1 - at `$.count`" in second.latest.text
    assert first.system == second.system


@pytest.mark.parametrize("answer", ["eight", "", "x" * 200_000], ids=["words", "empty", "long"])
async def test_bad_json_twice_is_an_unusable_answer(keeper: Keeper, answer: str) -> None:
    async with asking(keeper, [Rule("", Say(answer))]) as (oneshot, model):
        with pytest.raises(UnusableAnswer, match="not JSON"):
            await oneshot.ask("", "hello", schema=Arms)
    assert len(model.requests) == 2
    assert len(model.requests[1].body) < 2 * QUOTED_CHARS


@pytest.mark.parametrize("answer", ["", " \n"])
async def test_an_empty_answer_is_an_unusable_one(keeper: Keeper, answer: str) -> None:
    async with asking(keeper, [Rule("", Say(answer))]) as (oneshot, _):
        with pytest.raises(UnusableAnswer, match="empty"):
            await oneshot.ask("be brief", "hello")


async def test_an_empty_question_is_not_sent(keeper: Keeper) -> None:
    async with asking(keeper, []) as (oneshot, model):
        with pytest.raises(Refused):
            await oneshot.ask("be brief", " \n")
    assert model.requests == []


async def test_half_a_character_stops_neither_a_question_nor_an_answer(keeper: Keeper) -> None:
    async with asking(keeper, [Rule(r"^oct\?pus$", Say("eight \ud83d"))]) as (oneshot, _):
        answer = await oneshot.ask("\udc80", "oct\ud83dpus")
    # In ASCII, because xdist cannot report a failure that quotes half a character.
    assert ascii(answer) == "'eight ?'"
