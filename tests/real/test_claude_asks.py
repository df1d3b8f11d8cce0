"""What claude asks of a person, through takopi's engine: claude alone asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from takopi.core.events import Answer, Question
from takopi.core.ports import EngineLimits
from takopi.kit.proc import Keeper
from tests.real.engines import MakeCli, Person, Player, Ran
from tests.real.scripts import PLAN, PLAN_UNWRITTEN, Case, ask, command_twice, write, write_twice

pytestmark = pytest.mark.real

TWICE = command_twice("touch one.txt", "touch two.txt")


@pytest.fixture
def claude(make_cli: MakeCli, keeper: Keeper) -> Player:
    """As it is when nothing is configured: every tool that changes something is asked for."""
    return Player("claude", make_cli, keeper)


def commands_ok(ran: Ran) -> list[bool | None]:
    return [step.ok for step in ran.actions("command") if step.phase == "completed"]


async def test_an_allowed_command_runs_and_the_next_is_asked_for_again(
    claude: Player, tmp_path: Path
) -> None:
    person = Person(Answer("allow"))
    ran = await claude.play(TWICE, person=person)
    assert [(ask.kind, ask.tool, ask.target, ask.for_thread) for ask in person.asked] == [
        ("approval", "Bash", "touch one.txt", True),
        ("approval", "Bash", "touch two.txt", True),
    ]
    assert commands_ok(ran) == [True, True]
    assert (tmp_path / "project" / "one.txt").exists()
    assert (tmp_path / "project" / "two.txt").exists()


async def test_allowed_for_the_thread_the_second_command_is_not_asked_for(
    claude: Player, tmp_path: Path
) -> None:
    person = Person(Answer("allow_thread"))
    ran = await claude.play(TWICE, person=person)
    assert [ask.target for ask in person.asked] == ["touch one.txt"]
    assert commands_ok(ran) == [True, True]
    assert (tmp_path / "project" / "two.txt").exists()


async def test_what_is_allowed_for_the_thread_is_not_written_into_the_project(
    claude: Player, tmp_path: Path
) -> None:
    # For this one, claude itself offers a rule in the project's settings.
    person = Person(Answer("allow_thread"))
    await claude.play(command_twice("python3 x.py", "python3 x.py"), person=person)
    assert [ask.target for ask in person.asked] == ["python3 x.py"]
    assert [path.name for path in (tmp_path / "project").iterdir()] == [".git"]


async def test_a_denied_command_does_not_run_and_the_model_hears_why(
    claude: Player, tmp_path: Path
) -> None:
    person = Person(Answer("deny", reason="too wet today"))
    ran = await claude.play(TWICE, person=person)
    assert commands_ok(ran) == [False, False]
    assert ran.completed.answer == "The tool said: too wet today"
    assert not (tmp_path / "project" / "one.txt").exists()


async def test_an_ask_that_nobody_answers_is_denied_at_its_deadline(
    claude: Player, tmp_path: Path
) -> None:
    ran = await claude.play(TWICE, person=Person(), limits=EngineLimits(ask_s=0.2))
    assert commands_ok(ran) == [False, False]
    assert ran.completed.answer == "The tool said: deny, nobody answered"
    assert not (tmp_path / "project" / "one.txt").exists()


async def test_a_write_is_shown_before_it_is_allowed(claude: Player, tmp_path: Path) -> None:
    path = tmp_path / "project" / "out.txt"
    person = Person(Answer("allow"))
    await claude.play(write("claude", path), person=person)
    assert [(ask.tool, ask.target, ask.preview) for ask in person.asked] == [
        ("Write", "out.txt", "+eight arms")
    ]
    assert path.read_text(encoding="utf-8") == "eight arms"


async def test_allowed_for_the_thread_the_second_write_is_not_asked_for(
    claude: Player, tmp_path: Path
) -> None:
    first, second = tmp_path / "project" / "one.txt", tmp_path / "project" / "two.txt"
    person = Person(Answer("allow_thread"))
    await claude.play(write_twice("claude", first, second), person=person)
    assert [ask.target for ask in person.asked] == ["one.txt"]
    assert second.read_text(encoding="utf-8") == "three hearts"


@pytest.mark.parametrize(
    ("several", "reply", "told"),
    [
        (False, ("Baltic",), '"Which sea?"="Baltic"'),
        (True, ("Aegean", "Baltic"), '"Which sea?"="Aegean, Baltic"'),
        (False, ("the one with “kelp”",), '"Which sea?"="the one with “kelp”"'),
    ],
    ids=["one", "several", "typed"],
)
async def test_the_answer_to_a_question_reaches_the_model(
    claude: Player, several: bool, reply: tuple[str, ...], told: str
) -> None:
    person = Person(Answer("allow", replies=(reply,)))
    ran = await claude.play(ask(several=several), person=person)
    (asked,) = person.asked
    (question,) = asked.questions
    assert asked.kind == "question"
    assert isinstance(question, Question)
    assert (question.text, question.header, question.several) == ("Which sea?", "Sea", several)
    assert [choice.label for choice in question.choices] == ["Aegean", "Baltic"]
    assert told in ran.completed.answer


async def test_a_question_that_is_not_answered_is_told_so(claude: Player) -> None:
    ran = await claude.play(ask(), person=Person(Answer("deny")))
    assert ran.completed.answer == "The tool said: The user did not answer."


@pytest.mark.parametrize(
    ("case", "shown"),
    [(PLAN, "1. Swim.\n2. Rest.\n"), (PLAN_UNWRITTEN, "")],
    ids=["written", "unwritten"],
)
async def test_an_approved_plan_lets_the_model_begin(
    claude: Player, case: Case, shown: str
) -> None:
    person = Person(Answer("allow"))
    ran = await claude.play(case, person=person, permission_mode="plan")
    assert [(ask.kind, ask.tool, ask.plan) for ask in person.asked] == [
        ("approval", "ExitPlanMode", shown)
    ]
    assert "User has approved" in ran.completed.answer


@pytest.mark.parametrize("case", [PLAN, PLAN_UNWRITTEN], ids=["written", "unwritten"])
async def test_a_plan_is_sent_back_with_what_is_to_change(claude: Player, case: Case) -> None:
    person = Person(Answer("deny", reason="swim less"))
    ran = await claude.play(case, person=person, permission_mode="plan")
    assert ran.completed.answer == ("The tool said: The user asks for a revised plan: swim less")
