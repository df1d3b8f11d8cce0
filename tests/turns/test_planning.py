"""Planning that is stopped anywhere and begun again ends with the plan that was asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from takopi.core.errors import Refused, Unreachable
from takopi.turns import journal
from takopi.turns.machine import Choice
from takopi.turns.plan import Create, Execute, Plan
from takopi.turns.planning import Planner, turn_of
from takopi.turns.render import render
from takopi.turns.review import Review
from takopi.turns.service import Invalid, Rules, create_session

GOOD = render(Plan(title="Good", rationale="Why.", actions=(Create(path="a.txt", content="a\n"),)))
BAD = render(Plan(title="Bad", rationale="Why.", actions=(Execute(command="x", cwd="/tmp"),)))


class Killed(BaseException):
    """The process ends here."""


class Process:
    """A process that plans: what it keeps outlives it, and a text of None in `answers` kills it.

    With `dies` it is killed at that step of keeping: two of them, before and behind, each time.
    """

    def __init__(self, review: Review, *answers: str | None) -> None:
        self.kept = review
        self.answers = list(answers)
        self.asked: list[str] = []
        self.told: list[tuple[str, bool]] = []
        self.dies: int | None = None
        self.steps = 0

    async def ask(self, _system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        self.asked.append(user.rpartition("## User Request\n\n")[2].strip())
        answer = self.answers.pop(0)
        if answer is None:
            raise Unreachable("killed", maybe_applied=True)
        return answer

    async def keep(self, review: Review) -> None:
        await trio.lowlevel.checkpoint()
        self._step()
        self.kept = review
        self._step()

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.dies:
            raise Killed

    async def tell(self, review: Review, *, invalid: Invalid, again: bool) -> None:
        await trio.lowlevel.checkpoint()
        assert invalid.errors
        self.told.append((review.turn, again))

    async def plan(self, root: Path, *, is_recovered: bool = False, max_replans: int = 1) -> str:
        planner = Planner(
            ask=self.ask,
            rules=Rules(max_replans=max_replans),
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


@pytest.mark.parametrize("dies", [1, 2, 3, 4])
async def test_kill_around_a_corrected_plan_neither_loses_it_nor_asks_twice(
    tmp_path: Path, dies: int
) -> None:
    process = Process(ordered(tmp_path), BAD, GOOD)
    process.dies = dies
    with pytest.raises(Killed):
        await process.plan(tmp_path)
    process.dies = None
    assert await process.plan(tmp_path, is_recovered=True) == "02 Good"
    assert len(process.asked) == 2


async def test_kill_while_a_second_correction_is_made_goes_on_with_it(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), BAD, BAD.replace("Why.", "Still."), None, GOOD)
    with pytest.raises(Unreachable):
        await process.plan(tmp_path, max_replans=2)
    assert await process.plan(tmp_path, is_recovered=True, max_replans=2) == "03 Good"
    assert process.asked[2] == process.asked[3] != process.asked[1]


async def test_correction_that_fails_after_a_kill_is_kept_as_what_was_asked(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), BAD, None, None)
    for is_recovered in (False, True):
        with pytest.raises(Unreachable):
            await process.plan(tmp_path, is_recovered=is_recovered)
    assert process.kept.turn == "02"
    assert process.kept.message.strip() == process.asked[1]


async def test_newer_order_counts_after_a_kill_before_it_was_asked(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), None, GOOD)
    with pytest.raises(Unreachable):
        await process.plan(tmp_path)
    process.kept = replace(process.kept, task="begin", message="Newer")
    process.dies = 4
    with pytest.raises(Killed):
        await process.plan(tmp_path)
    process.dies = None
    assert await process.plan(tmp_path, is_recovered=True) == "01 Good"
    assert process.asked == ["Hello", "Newer"]


async def test_turn_that_somebody_carried_out_meanwhile_did_not_fail(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), GOOD)
    await process.plan(tmp_path)
    turn = turn_of(tmp_path, process.kept)
    plan = turn.path("plan.md").read_text(encoding="utf-8")
    journal.append(turn, journal.opening(plan, Choice(), started=""))
    turn.path("report.md").write_text("# Done\n", encoding="utf-8")
    with pytest.raises(Refused, match="turn 01 is done"):
        await process.plan(tmp_path, is_recovered=True)


async def test_one_plan_that_failed_is_not_called_several(tmp_path: Path) -> None:
    process = Process(ordered(tmp_path), BAD)
    with pytest.raises(Refused, match=r"^the plan failed its checks"):
        await process.plan(tmp_path, max_replans=0)


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
