"""What is known of one interview, in the form of its file; what follows from it is derived."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

from takopi.core.context import Context
from takopi.core.ids import EngineId, ResumeToken, Scope

STAMP = "%Y-%m-%dT%H:%M:%SZ"
"""How its times are written."""

State = Literal["COLLECTING", "CONFIRMING", "EXECUTING", "DONE"]
Shown = Literal["checking", "question", "edit", "menu", "summary"]


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer to choose: the label is on its button, the value is what is kept."""

    label: str
    value: str


class Question(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One question, with at most four options."""

    id: str
    question: str
    options: tuple[Option, ...] = ()
    allow_free_text: bool = False
    multi_select: bool = False

    def shown(self, answer: str) -> str:
        """An answer as a person reads it: the label of the option that was chosen."""
        labels = (option.label for option in self.options if option.value == answer)
        return next(labels, answer)


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question that was answered."""

    question: str
    answer: str


class Order(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is to be planned, and where and by whom it is done in the end."""

    task: str
    message_id: int | None = None
    engine: str
    model: str | None = None
    thread: str | None = None
    context: Context | None = None
    cwd: str | None = None

    @property
    def token(self) -> ResumeToken | None:
        """The conversation that goes on, if one does."""
        return None if self.thread is None else ResumeToken(EngineId(self.engine), self.thread)


class Session(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One interview.

    `revision` counts the cards: only the buttons of the last one are of use. `shown` is what that
    card shows. `pending` is what another /plan asked for while this one is open. `run_id` is the
    run whose answer was the questions.
    """

    session_id: str
    chat_id: int
    state: State = "COLLECTING"
    task: str
    goal: str = ""
    description: str = ""
    questions: tuple[Question, ...] = ()
    answers: tuple[str | None, ...] = ()
    current_question_index: int = 0
    plan_path: str | None = None
    created_at: str
    updated_at: str
    completed_qa: tuple[Pair, ...] = msgspec.field(name="completedQA", default=())
    current_batch_start: int = 0
    round: int = 1
    context: Context | None = None
    thread_id: int | None = None
    user_id: int
    transport: str
    order: Order
    revision: int = 0
    shown: Shown = "checking"
    confirmed_message_id: int | None = None
    pending: Order | None = None
    run_id: int | None = None

    def __post_init__(self) -> None:
        total = len(self.questions)
        if len(self.answers) != total:
            raise ValueError("there must be as many answers as questions")
        if not 0 <= self.current_batch_start <= total:
            raise ValueError("the batch begins outside of the questions")
        if not 0 <= self.current_question_index <= total:
            raise ValueError("the current question is none of the questions")
        if self.shown in {"question", "edit"} and self.current_question_index == total:
            raise ValueError("there is no question to be shown")
        # Whether it has expired is asked of every session that is open.
        _ = self.updated_s

    @property
    def updated_s(self) -> float:
        """When somebody last went on with it, in seconds of the epoch."""
        return datetime.strptime(self.updated_at, STAMP).replace(tzinfo=UTC).timestamp()

    @property
    def scope(self) -> Scope:
        """Where it is held."""
        return Scope(self.transport, self.chat_id, self.thread_id)

    @property
    def current(self) -> Question | None:
        """The question that waits for its answer."""
        if self.shown in {"question", "edit"}:
            return self.questions[self.current_question_index]
        return None

    @property
    def card_key(self) -> str:
        """Under what the card that it shows is kept in the outbox."""
        return f"iq:{self.session_id}:{self.revision}"

    @property
    def end_key(self) -> str:
        """Under what its last word is kept in the outbox."""
        return f"iq:{self.session_id}:end"

    def pairs(self, until: int | None = None) -> tuple[Pair, ...]:
        """Every question that was answered, with its answer as a person reads it."""
        asked = zip(self.questions[:until], self.answers[:until], strict=True)
        return tuple(
            Pair(question.question, question.shown(answer))
            for question, answer in asked
            if answer is not None
        )


def encode(session: Session) -> bytes:
    """The session as its file."""
    finished = None if session.state != "COLLECTING" else session.current_batch_start
    whole = msgspec.structs.replace(session, completed_qa=session.pairs(finished))
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def decode(data: bytes) -> Session:
    """The session of a file; `msgspec.MsgspecError` if it is none."""
    return msgspec.json.decode(data, type=Session)
