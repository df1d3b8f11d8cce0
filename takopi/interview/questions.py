"""One batch of questions from a model: asked with all answers so far, and made fit for buttons."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from takopi.interview.machine import Batch
from takopi.interview.plan_file import slug
from takopi.interview.session import Option, Question, Session
from takopi.oneshot.port import Oneshot
from takopi.prompts.aggregator import question_prompt

MAX_OPTIONS = 4
MAX_QUESTIONS = 4
"""How many questions of one batch are asked."""

SYSTEM = """\
You plan a coding task together with the person who wants it done. You ask only what you must know \
before somebody implements it, and you never ask what has been answered already. A question has \
2 to 4 options, each with a short label for a button and a value; set allowFreeText where the \
person's own words may be needed. goal and description are short slugs."""

FIRST = """\
Task: {task}
Generate 2\N{EN DASH}4 clarifying questions. \
Return JSON: {{goal, description, questions, done: false}}"""

NEXT = """\
Task: {task}

Answers gathered so far:
{answers}

Do you need more clarifying questions?
- If yes: return {{done: false, questions: [...]}} (2\N{EN DASH}4 more, no repeats)
- If enough context: return {{done: true, questions: []}}
Max {max_rounds} rounds total."""


class AskedOption(msgspec.Struct, frozen=True):
    """An option as a model writes it."""

    label: str = ""
    value: str = ""


class AskedQuestion(msgspec.Struct, frozen=True, rename="camel"):
    """A question as a model writes it."""

    question: str
    id: str = ""
    options: tuple[AskedOption, ...] = ()
    allow_free_text: bool = False


class Asked(msgspec.Struct, frozen=True):
    """What a model answers."""

    questions: tuple[AskedQuestion, ...] = ()
    done: bool = False
    goal: str = ""
    description: str = ""


def batch_prompt(session: Session, *, max_rounds: int) -> str:
    """What the model is asked."""
    pairs = session.pairs()
    if not pairs:
        return FIRST.format(task=session.task)
    answers = "\n".join(f"Q: {pair.question} → {pair.answer}" for pair in pairs)
    return NEXT.format(task=session.task, answers=answers, max_rounds=max_rounds)


async def next_batch(oneshot: Oneshot, session: Session, *, max_rounds: int) -> Batch:
    """Ask for the next questions; the caller sets the deadline."""
    prompt = question_prompt(SYSTEM, batch_prompt(session, max_rounds=max_rounds))
    asked = await oneshot.ask(prompt.system or "", prompt.user, schema=Asked)
    questions = () if asked.done else usable(asked.questions, most=MAX_QUESTIONS)
    return Batch(questions, *slugs(asked.goal, asked.description, task=session.task))


def usable(asked: Iterable[AskedQuestion], *, most: int) -> tuple[Question, ...]:
    """The questions that can be shown: with a text, at most four options, and none without a label.

    Where no option is left, the answer has to be typed.
    """
    questions: list[Question] = []
    for each in asked:
        if not each.question.strip() or len(questions) == most:
            continue
        options = _options(each.options)
        questions.append(
            Question(
                id=f"q{len(questions) + 1}",
                question=each.question.strip(),
                options=options,
                allow_free_text=each.allow_free_text or not options,
            )
        )
    return tuple(questions)


def slugs(goal: str, description: str, *, task: str) -> tuple[str, str]:
    """The two names of the brief, from the model's words or else from the task."""
    return slug(goal) or slug(task) or "plan", slug(description) or slug(task) or "plan"


def _options(asked: Iterable[AskedOption]) -> tuple[Option, ...]:
    options: list[Option] = []
    for each in asked:
        label = " ".join(each.label.split())
        if not label or label in {option.label for option in options}:
            continue
        taken = {option.value for option in options}
        value = each.value.strip()
        # A value that stands for two labels would not tell which was chosen.
        if not value or value in taken:
            value = label
        if value not in taken and len(options) < MAX_OPTIONS:
            options.append(Option(label=label, value=value))
    return tuple(options)
