"""Planning that is stopped anywhere and begun again ends with the plan that was asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from takopi.core.errors import Refused, Unreachable
from takopi.turns.plan import Create, Execute, Plan
from takopi.turns.planning import Planner
from takopi.turns.render import render
from takopi.turns.review import Review
from takopi.turns.service import Invalid, Rules, create_session

GOOD = render(Plan(title="Good", rationale="Why.", actions=(Create(path="a.txt", content="a\n"),)))
BAD = render(Plan(title="Bad", rationale="Why.", actions=(Execute(command="x", cwd="/tmp"),)))


class Process:
    """A process that plans: what it keeps outlives it, and a text of None in `answers` kills it."""

    def __init__(self, review: Review, *answers: str | None) -> None:
        self.kept = review
        self.answers = list(answers)
        self.asked: list[str] = []
        self.told: list[tuple[str, bool]] = []

    async def ask(self, _system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        self.asked.append(user.rpartition("## User Request\n\n")[2].strip())
        answer = self.answers.pop(0)
        if answer is None:
            raise Unreachable("killed", maybe_applied=True)
        return answer

    async def keep(self, review: Review) -> None:
        await trio.lowlevel.checkpoint()
        self.kept = review

    async def tell(self, review: Review, *, invalid: Invalid, again: bool) -> None:
        await trio.lowlevel.checkpoint()
        assert invalid.errors
        self.told.append((review.turn, again))

    async def plan(self, root: Path, *, is_recovered: bool = False) -> str:
        planner = Planner(
            ask=self.ask,
            rules=Rules(max_replans=1),
            environ=os.environ,
            keep=self.keep,
            tell=self.tell,
        )
        found = await planner.plan(root, self.kept, is_recovered=is_recovered)
        return f"{found.turn.id} {found.plan.title}"


def ordered(root: Path, message: str = "Hello") -> Review:
    session = create_session(root, "greet")
    return Review(stage="planning", session=session.name, turn="01", task="begin", message=message)


async def test_what_was_asked_and_not_answered_is_asked_again(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), None, GOOD)
    with pytest.raises(Unreachable):
        await process.plan(tmp_path)
    assert await process.plan(tmp_path, is_recovered=True) == "01 Good"
    assert process.asked == ["Hello", "Hello"]


async def test_plan_that_was_made_before_a_kill_is_not_made_again(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), GOOD)
    await process.plan(tmp_path)
    assert await process.plan(tmp_path, is_recovered=True) == "01 Good"
    assert process.asked == ["Hello"]


async def test_another_order_makes_another_plan_of_the_same_turn(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), GOOD, GOOD)
    await process.plan(tmp_path)
    process.kept = replace(process.kept, task="begin")
    assert await process.plan(tmp_path) == "01 Good"
    assert process.asked == ["Hello", "Hello"]


async def test_kill_while_a_plan_is_corrected_goes_on_with_what_was_wrong(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), BAD, None, GOOD)
    with pytest.raises(Unreachable):
        await process.plan(tmp_path)
    assert await process.plan(tmp_path, is_recovered=True) == "02 Good"
    assert process.told == [("01", True)]
    assert process.asked[1] == process.asked[2]
    assert process.asked[2].startswith("The previous plan failed validation.")


async def test_plans_that_were_given_up_are_not_made_after_a_kill(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), BAD, BAD)
    for is_recovered in (False, True):
        with pytest.raises(Refused, match="2 plans in a row failed"):
            await process.plan(tmp_path, is_recovered=is_recovered)
    assert len(process.asked) == 2
    assert process.told == [("01", True), ("02", False)]


async def test_session_that_was_ordered_is_made_once(tmp_path: Path) -> None:
    session = create_session(tmp_path, "other").name.replace("other", "new-one")
    review = Review(stage="planning", session=session, turn="01", task="new", message="Hello")
    process = Process(review, None, GOOD)
    with pytest.raises(Unreachable):
        await process.plan(tmp_path)
    process.kept = review
    assert await process.plan(tmp_path, is_recovered=True) == "01 Good"
    assert [one.name.partition("-")[2] for one in sorted((tmp_path / ".teddy").iterdir())] == [
        "new-one",
        "other",
    ]


async def test_skipped_plan_is_reported_once_and_the_next_turn_planned(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), GOOD, None, GOOD)
    await process.plan(tmp_path)
    skipped = process.kept = replace(process.kept, task="skip", message="Other")
    with pytest.raises(Unreachable):
        await process.plan(tmp_path)
    process.kept = skipped
    assert await process.plan(tmp_path, is_recovered=True) == "02 Good"
    assert process.asked == ["Hello", "Other", "Other"]


async def test_next_turn_is_the_one_after_the_newest(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), GOOD, GOOD, GOOD)
    await process.plan(tmp_path)
    first = process.kept
    process.kept = replace(first, task="skip", message="Two")
    await process.plan(tmp_path)
    process.kept = replace(process.kept, task="skip", message="Three")
    await process.plan(tmp_path)
    process.kept = replace(first, task="begin", message="Late")
    process.answers.append(GOOD)
    assert await process.plan(tmp_path) == "03 Good"
