"""One run of the demo engine: its lines become takopi's vocabulary, and decisions become lines."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from takopi.core.events import Action, Answer, Ask, Choice, Completed, Question, Started, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.demo import schema
from takopi.engines.spec import Finished, Said, Withdrawn
from takopi.engines.wording import (
    explain_exit,
    explain_failure,
    explain_lost_thread,
    shorten,
    tail,
    visible,
)

DEMO = EngineId("demo")


class DemoDialect:
    """How one run of the demo engine talks."""

    def __init__(self, job: EngineJob) -> None:
        self._job = job
        self._thread: ResumeToken | None = None
        self._model: str | None = None
        self._ending: schema.Result | schema.Error | None = None

    @property
    def two_way(self) -> bool:
        return True

    def opening(self) -> bytes:
        return _line("prompt", text=self._job.prompt, system=self._job.system)

    def read(self, line: bytes) -> Sequence[Said]:
        match schema.decode(line):
            case schema.Step() as step:
                action = Action(
                    step.id, step.kind, shorten(step.title), step.phase, step.ok, tail(step.detail)
                )
                return (action,)
            case schema.Thread(id=thread_id, model=model) if self._thread is None:
                self._thread, self._model = ResumeToken(DEMO, thread_id), model
                return (Started(self._thread, model),)
            case schema.Wait() as asked:
                return (_ask(asked),)
            case schema.Withdraw(id=ask_id):
                return (Withdrawn(ask_id),)
            case (schema.Result() | schema.Error()) as ending if self._ending is None:
                self._ending = ending
                return (Finished(),)
            case _:
                return ()

    @staticmethod
    def answer(ask: Ask, answer: Answer) -> bytes:
        return _line(
            "answer",
            id=ask.id,
            verdict=answer.verdict,
            reason=answer.reason,
            replies=answer.replies,
        )

    @staticmethod
    def interrupt() -> bytes:
        return _line("interrupt")

    def end(self, code: int, stderr: str) -> Completed:
        resume = self._thread or self._job.resume
        match self._ending:
            case schema.Result(ok=ok, answer=answer, error=error, usage=usage):
                return Completed(
                    ok=ok,
                    answer=answer,
                    resume=resume,
                    model=self._model,
                    usage=_usage(usage),
                    error=None if ok else explain_failure("demo", error or ""),
                )
            case schema.Error(code="no_thread") if self._job.resume is not None:
                return Completed(ok=False, error=explain_lost_thread("demo"), thread_lost=True)
            case schema.Error(message=message):
                error = explain_failure("demo", message)
                return Completed(ok=False, resume=resume, model=self._model, error=error)
            case None:
                error = explain_exit("demo", code, stderr=stderr)
                return Completed(ok=False, resume=resume, model=self._model, error=error)


def _line(kind: str, **fields: object) -> bytes:
    return msgspec.json.encode({"type": kind, **fields}) + b"\n"


def _ask(asked: schema.Wait) -> Ask:
    questions = tuple(
        Question(
            question.text,
            question.header,
            tuple(Choice(option.label, option.description) for option in question.choices),
            question.several,
        )
        for question in asked.questions
    )
    return Ask(
        asked.id,
        asked.kind,
        visible(asked.tool),
        visible(asked.target),
        visible(asked.preview),
        asked.plan,
        asked.for_thread,
        questions,
    )


def _usage(spent: schema.Spent | None) -> Usage:
    if spent is None:
        return Usage()
    return Usage(spent.input_tokens, spent.output_tokens, spent.cached_tokens, spent.cost_usd)
