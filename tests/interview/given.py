"""Sessions and questions for the tests of the interview."""

from __future__ import annotations

from msgspec.structs import replace

from takopi.interview.machine import Batch, apply
from takopi.interview.session import Option, Order, Question, Session

ORDER = Order(task="add JWT authentication", engine="demo")


def question(text: str, *labels: str, typed: bool = False) -> Question:
    options = tuple(Option(label=label, value=label.lower()) for label in labels)
    return Question(id="q", question=text, options=options, allow_free_text=typed)


def fresh() -> Session:
    return Session(
        session_id="0f3c",
        chat_id=1001,
        task=ORDER.task,
        created_at="2026-02-18T13:18:06Z",
        updated_at="2026-02-18T13:18:06Z",
        user_id=1001,
        transport="telegram",
        order=ORDER,
    )


def asking(*questions: Question) -> Session:
    """A session that has just got its first questions."""
    batch = Batch(questions, "jwt-auth", "implement-jwt-auth-system")
    return apply(fresh(), batch, max_rounds=3).session


def answered(*pairs: tuple[str, str]) -> Session:
    """A session with these questions and answers, ready to be confirmed."""
    session = asking(*(question(text, typed=True) for text, _ in pairs))
    answers = tuple(answer for _, answer in pairs)
    return replace(
        session,
        answers=answers,
        state="CONFIRMING",
        shown="summary",
        current_question_index=len(answers),
    )
