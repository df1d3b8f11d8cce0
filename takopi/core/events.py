"""What an engine says while it works, and what a person answers.

A run emits at most one `Started`, any number of `Action` and returns exactly one `Completed`.
An `Ask` goes to the person through the answer port and comes back as an `Answer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from takopi.core.ids import ResumeToken

ActionKind = Literal["command", "tool", "file_change", "web_search", "subagent", "note", "warning"]
Phase = Literal["started", "updated", "completed"]
Verdict = Literal["allow", "allow_thread", "deny"]


@dataclass(frozen=True, slots=True)
class Started:
    """The engine has a thread: from here on the run can be resumed."""

    resume: ResumeToken
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """One step of the engine. The same id comes again when the step goes on or ends.

    `ok` is None until the step has ended, and stays None where the engine does not tell.
    """

    id: str
    kind: ActionKind
    title: str
    phase: Phase = "completed"
    ok: bool | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of a question."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the person. A typed answer is always allowed beside the choices."""

    text: str
    header: str = ""
    choices: tuple[Choice, ...] = ()
    several: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Something the engine needs from a person before it goes on.

    An approval names the tool and its target and shows a short command or diff in `preview`;
    `for_thread` says that the permission can be given for the rest of the thread, and `grant`
    what that would cover, where the engine forgets it at the end of a run: the same text is the
    same permission.
    A proposed plan is an approval whose `plan` is not None (it may be empty). A question
    carries its `questions`.
    """

    id: str
    kind: Literal["approval", "question"]
    tool: str = ""
    target: str = ""
    preview: str = ""
    plan: str | None = None
    for_thread: bool = False
    questions: tuple[Question, ...] = ()
    grant: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person decided.

    `replies` holds, question by question, the chosen labels or one typed text; `reason` is
    what the engine is told when it was denied.
    """

    verdict: Verdict
    reason: str = ""
    replies: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What the engine reports it has spent; None where it does not tell."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """How the run ended: always exactly one, also when the CLI died without a result.

    `error` is one sentence for the person, set whenever `ok` is False. `thread_lost` says that
    the engine no longer knows the thread it was asked to resume, so that a fresh start is the
    way out.
    """

    ok: bool
    answer: str = ""
    resume: ResumeToken | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    thread_lost: bool = False


Event: TypeAlias = Started | Action
