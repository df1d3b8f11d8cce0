from __future__ import annotations

from takopi.interview.questions import AskedOption, AskedQuestion, batch_prompt, usable
from tests.interview.given import answered, fresh


def options(*labels: str) -> tuple[AskedOption, ...]:
    return tuple(AskedOption(label, label.lower()) for label in labels)


def test_first_prompt_is_the_specified_one() -> None:
    assert batch_prompt(fresh(), max_rounds=3) == (
        "Task: add JWT authentication\nGenerate 2\N{EN DASH}4 clarifying questions. "
        "Return JSON: {goal, description, questions, done: false}"
    )


def test_later_prompt_has_all_answers() -> None:
    session = answered(("What type of auth?", "JWT"), ("Frontend framework?", "React"))
    assert (
        batch_prompt(session, max_rounds=3)
        == """\
Task: add JWT authentication

Answers gathered so far:
Q: What type of auth? → JWT
Q: Frontend framework? → React

Do you need more clarifying questions?
- If yes: return {done: false, questions: [...]} (2\N{EN DASH}4 more, no repeats)
- If enough context: return {done: true, questions: []}
Max 3 rounds total."""
    )


def test_fifth_option_is_left_out_and_an_empty_label_dropped() -> None:
    (question,) = usable(
        [AskedQuestion("Which?", options=options("A", " ", "B", "C", "D", "E"))], most=4
    )
    assert [option.label for option in question.options] == ["A", "B", "C", "D"]


def test_options_of_one_value_can_be_told_apart() -> None:
    asked = AskedQuestion("Which?", options=(AskedOption("A", "x"), AskedOption("B", "x")))
    (question,) = usable([asked], most=4)
    assert [option.value for option in question.options] == ["x", "B"]


def test_question_without_an_option_is_answered_by_typing() -> None:
    (question,) = usable([AskedQuestion("What?")], most=4)
    assert question.allow_free_text
