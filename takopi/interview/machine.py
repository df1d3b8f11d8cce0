"""How an interview goes on: one event changes it once, or leaves it as it is and says why.

Pure: `apply(session, event)` gives the new session and what is to be done. Whoever calls it keeps
the session first and does the rest after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec.structs import replace

from takopi.interview.session import Order, Question, Session

TOO_LATE = "This was decided already."
USE_BUTTONS = "Please use the buttons to answer ☝️"
FIRST = "This is the first question."
WAIT = "The next questions are on their way."
TYPE_IT = "Type your answer as a message."


@dataclass(frozen=True, slots=True)
class Chosen:
    """An option was pressed."""

    question: int
    option: int


@dataclass(frozen=True, slots=True)
class Typed:
    """A text was sent."""

    text: str


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button without numbers was pressed."""

    what: Literal["back", "back_summary", "confirm", "edit", "cancel", "ft", "continue", "over"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A question of the edit menu was pressed."""

    question: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What the model has to ask; nothing, if it knows enough or could not be asked."""

    questions: tuple[Question, ...] = ()
    goal: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Again:
    """Another /plan came while this one is open."""

    order: Order


@dataclass(frozen=True, slots=True)
class Unstarted:
    """The run could not be started: back to the summary."""


Event: TypeAlias = Chosen | Typed | Pressed | Edit | Batch | Again | Unstarted
Effect: TypeAlias = Literal["show", "ask", "execute", "cancel", "offer", "restart", "keep"]


@dataclass(frozen=True, slots=True)
class Step:
    """What an event came to. `note` is for the person; `closed` is how the old card reads now.

    `show` a card, `ask` the model, `execute` the plan, `cancel` it, `offer` to go on or to begin
    again, `restart` with the pending order, or only `keep` what has changed. Without an effect the
    session is as it was.
    """

    session: Session
    effect: Effect | None = None
    note: str = ""
    closed: str = ""


def apply(session: Session, event: Event, *, max_rounds: int) -> Step:
    """The session after the event."""
    match event:
        case Chosen():
            return _choose(session, event, max_rounds)
        case Typed():
            return _type(session, event.text, max_rounds)
        case Edit():
            return _edit(session, event.question)
        case Batch():
            return _take(session, event)
        case Again():
            return Step(_turn(session, pending=event.order), "offer")
        case Unstarted():
            if session.state != "EXECUTING":
                return Step(session)
            return Step(_summary(session), "show")
        case Pressed():
            return _press(session, event)


def _press(session: Session, event: Pressed) -> Step:
    if session.pending is not None or event.what in {"continue", "over"}:
        return _decide_pending(session, event.what)
    if event.what == "cancel" and session.state != "EXECUTING":
        return Step(session, "cancel")
    if event.what == "ft" and session.current is not None:
        return Step(session, note=TYPE_IT if session.current.allow_free_text else USE_BUTTONS)
    match event.what, session.shown:
        case "back", "question":
            return _back(session)
        case "back_summary", "edit" | "menu":
            return Step(_summary(session), "show")
        case "edit", "summary" if session.state == "CONFIRMING":
            return Step(_turn(session, shown="menu"), "show")
        case "confirm", "summary" if session.state == "CONFIRMING":
            return Step(_turn(session, state="EXECUTING"), "execute")
        case _:
            return Step(session, note=TOO_LATE)


def _decide_pending(session: Session, what: str) -> Step:
    if session.pending is None:
        return Step(session, note=TOO_LATE)
    if what == "over":
        return Step(session, "restart")
    if what == "cancel":
        return Step(session, "cancel")
    if what == "continue":
        return Step(_turn(session, pending=None), "show")
    return Step(session, note=TOO_LATE)


def _choose(session: Session, chosen: Chosen, max_rounds: int) -> Step:
    question = session.current
    if question is None or chosen.question != session.current_question_index:
        return Step(session, note=TOO_LATE)
    if session.pending is not None or not 0 <= chosen.option < len(question.options):
        return Step(session, note=TOO_LATE)
    return _answer(session, question.options[chosen.option].value, max_rounds)


def _type(session: Session, text: str, max_rounds: int) -> Step:
    question = session.current
    if question is None:
        return Step(session, note=WAIT)
    if session.pending is not None or not question.allow_free_text or not text.strip():
        return Step(session, note=USE_BUTTONS)
    return _answer(session, text.strip(), max_rounds)


def _answer(session: Session, answer: str, max_rounds: int) -> Step:
    index = session.current_question_index
    question = session.questions[index]
    closed = f"{question.question} → {question.shown(answer)}"
    answers = (*session.answers[:index], answer, *session.answers[index + 1 :])
    session = replace(session, answers=answers)
    if session.shown == "edit":
        return Step(_summary(session), "show", closed=closed)
    if None in answers:
        following = answers.index(None)
        turned = _turn(session, shown="question", current_question_index=following)
        return Step(turned, "show", closed=closed)
    if session.round >= max_rounds:
        return Step(_summary(session), "show", closed=closed)
    # The step into the model's call is part of the session, so that nobody can take it twice.
    total = len(session.questions)
    turned = _turn(
        session, shown="checking", current_question_index=total, current_batch_start=total
    )
    return Step(turned, "ask", closed=closed)


def _back(session: Session) -> Step:
    index = session.current_question_index
    if index == 0:
        return Step(session, note=FIRST)
    answers = (*session.answers[:index], None, *session.answers[index + 1 :])
    turned = _turn(session, answers=answers, current_question_index=index - 1)
    return Step(turned, "show")


def _edit(session: Session, question: int) -> Step:
    if session.shown != "menu" or session.pending or not 0 <= question < len(session.questions):
        return Step(session, note=TOO_LATE)
    turned = _turn(session, state="COLLECTING", shown="edit", current_question_index=question)
    return Step(turned, "show")


def _take(session: Session, batch: Batch) -> Step:
    if session.state != "COLLECTING" or session.shown != "checking":
        return Step(session)
    turned = _with_batch(session, batch)
    if session.pending is not None:
        # Whether to go on at all is asked on the card that is shown now.
        return Step(replace(turned, revision=session.revision), "keep")
    return Step(turned, "show")


def _with_batch(session: Session, batch: Batch) -> Session:
    if not session.questions:
        session = replace(session, goal=batch.goal, description=batch.description)
    if not batch.questions:
        return _summary(session)
    total = len(session.questions)
    numbered = tuple(
        replace(question, id=f"q{number}")
        for number, question in enumerate(batch.questions, total + 1)
    )
    return _turn(
        session,
        questions=session.questions + numbered,
        answers=session.answers + (None,) * len(numbered),
        current_question_index=total,
        current_batch_start=total,
        round=session.round + bool(total),
        shown="question",
    )


def _summary(session: Session) -> Session:
    total = len(session.questions)
    return _turn(session, state="CONFIRMING", shown="summary", current_question_index=total)


def _turn(session: Session, **changes: object) -> Session:
    """The session with another card, which makes the buttons of the last one useless."""
    return replace(session, revision=session.revision + 1, **changes)
