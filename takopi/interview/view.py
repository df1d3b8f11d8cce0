"""How an interview reads: each card is made from the session alone, and fits into one message."""

from __future__ import annotations

import re
from dataclasses import dataclass

from takopi.core.outgoing import Button, Card, Text
from takopi.interview.machine import Chosen, Edit, Event, Pressed
from takopi.interview.session import Session
from takopi.present.cards import fit
from takopi.present.compose import bold, join, plain, stack
from takopi.present.units import length
from takopi.present.wording import one_line
from takopi.telegram.buttons import Codec

RULE = "━" * 22
CHECKING = "Checking for follow-up questions..."
FIRST_CHECK = "Preparing questions..."
CANCELLED = "❌ Planning cancelled."
STARTING = "🚀 Starting..."
USAGE = "Usage: /plan <task description>"

TASK_CHARS = 200
QUESTION_CHARS = 200
ANSWER_CHARS = 300
LABEL_CHARS = 60
SHORT_LABEL = 12
CELLS = 10

_NUMBERS = re.compile(r"a:(0|[1-9][0-9]?):([0-9])|eq:(0|[1-9][0-9]?)")


@dataclass(frozen=True, slots=True)
class InterviewPress:
    """What a button of an interview carries: `a:{question}:{option}`, `eq:{question}` or a word."""

    what: str


INTERVIEW = Codec("iq", InterviewPress)


def read_press(what: str) -> Event | None:
    """What was pressed; None for what no card ever had."""
    match what:
        case "back" | "back_summary" | "confirm" | "edit" | "cancel" | "ft" | "continue" | "over":
            return Pressed(what)
        case _:
            found = _NUMBERS.fullmatch(what)
    if found is None:
        return None
    if found[3] is not None:
        return Edit(int(found[3]))
    return Chosen(int(found[1]), int(found[2]))


def card_of(session: Session, *, max_units: int, problem: str = "") -> Card:
    """The card that the session shows now; `problem` is why its brief could not be saved."""
    if session.pending is not None:
        return _offer(session)
    match session.shown:
        case "checking":
            text = CHECKING if session.questions else FIRST_CHECK
            return Card(stack([_title(session), RULE, text]), ((_cancel(),),))
        case "question" | "edit":
            return _question(session)
        case "menu":
            return _menu(session)
        case "summary":
            return _summary(session, max_units, problem)


def closed_card(line: str) -> Card:
    """An answered question: what was asked and what was said."""
    return Card(plain(one_line(line, QUESTION_CHARS + ANSWER_CHARS)))


def progress_text(index: int, total: int) -> str:
    """`Q1 of 4 ▓▓░░░░░░░░ 25%`; `index` begins with 1."""
    percent = round(100 * index / total)
    full = percent // CELLS
    return f"Q{index} of {total} {'▓' * full}{'░' * (CELLS - full)} {percent}%"


def _title(session: Session) -> Text:
    return join(["📋 ", bold(f"Planning: {one_line(session.task, TASK_CHARS)}")])


def _question(session: Session) -> Card:
    index = session.current_question_index
    question = session.questions[index]
    text = stack([
        stack([_title(session), RULE, progress_text(index + 1, len(session.questions))]),
        one_line(question.question, QUESTION_CHARS),
    ], "\n\n")  # fmt: skip
    options = [
        Button(one_line(option.label, LABEL_CHARS), _data(f"a:{index}:{number}"))
        for number, option in enumerate(question.options)
    ]
    is_short = all(len(option.label) <= SHORT_LABEL for option in question.options)
    rows: list[tuple[Button, ...]] = (
        [tuple(options)] if is_short else [(button,) for button in options]
    )
    if question.allow_free_text:
        rows.append((Button("✍️ Type your own", _data("ft")),))
    back = Button("← Back", _data("back_summary" if session.shown == "edit" else "back"))
    rows.append((back, _cancel()))
    return Card(text, tuple(row for row in rows if row))


def _summary(session: Session, max_units: int, problem: str) -> Card:
    head = stack([
        stack([join(["✅ ", bold("Plan Ready")]), RULE]),
        join([bold("Task:"), f" {one_line(session.task, TASK_CHARS)}"]),
    ])  # fmt: skip
    lines = stack(
        join([
            bold(f"Q{number}:"),
            f" {one_line(pair.question, QUESTION_CHARS)} → {one_line(pair.answer, ANSWER_CHARS)}",
        ])
        for number, pair in enumerate(session.pairs(), 1)
    )  # fmt: skip
    foot = f"📁 Saved to: {session.plan_path}" if session.plan_path else ""
    if problem:
        foot = f"⚠️ Not saved: {one_line(problem, ANSWER_CHARS)}"
    room = max_units - length(head.text) - length(foot) - len("\n\n") * 2
    text = stack([head, fit(lines, room), foot], "\n\n")
    confirm = Button("✅ Confirm & Start", _data("confirm"))
    return Card(text, ((confirm, Button("✏️ Edit Answers", _data("edit"))),))


def _menu(session: Session) -> Card:
    text = stack([join(["✏️ ", bold("Edit Answers")]), RULE, "Which answer shall be changed?"])
    rows = [
        (Button(one_line(f"Q{n + 1}: {question.question}", LABEL_CHARS), _data(f"eq:{n}")),)
        for n, question in enumerate(session.questions)
    ]
    back = Button("← Back", _data("back_summary"))
    return Card(text, (*rows, (back, _cancel())))


def _offer(session: Session) -> Card:
    assert session.pending is not None  # ruff: ignore[assert] asked by the caller
    wanted = one_line(session.pending.task, TASK_CHARS)
    text = stack([
        _title(session), RULE, "This plan is not finished yet.",
        f"Start over drops it, and plans instead: {wanted}",
    ])  # fmt: skip
    go_on = Button("Continue", _data("continue"))
    return Card(text, ((go_on, Button("Start over", _data("over"))),))


def _cancel() -> Button:
    return Button("✖ Cancel", _data("cancel"))


def _data(what: str) -> str:
    return INTERVIEW.encode(InterviewPress(what))
