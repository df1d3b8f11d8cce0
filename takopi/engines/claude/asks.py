"""What claude wants a person to decide, and the line that carries the decision back to it.

An approval shows what it is given for, with nothing hidden: invisible characters are spelled out,
and what was left out is counted. A permission for the thread goes no further than the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec
from msgspec import Raw

from takopi.core.events import Answer, Ask, Choice, Question
from takopi.engines.claude.schema import Request, decode_object, decode_questions
from takopi.engines.claude.tools import PLAN_TOOL, QUESTION_TOOL, target_of
from takopi.engines.wording import shorten, visible

PREVIEW_CHARS = 1500
REASON_CHARS = 300

DENIED = "The user denied this."
UNANSWERED = "The user did not answer."
REVISE = "The user does not approve this plan yet. Ask what to change."

_SESSION = Raw(b'"session"')


@dataclass(frozen=True, slots=True)
class Pending:
    """What the answer to an open ask needs of its request."""

    input: Raw
    suggestions: tuple[Mapping[str, Raw], ...]


def open_ask(
    request_id: str, request: Request, *, plan: str | None, cwd: Path
) -> tuple[Ask, Pending]:
    """The ask for a `can_use_tool` request. `plan` is what the model called ExitPlanMode with."""
    arguments = decode_object(request.input)
    pending = Pending(request.input if arguments else Raw(b"{}"), _narrowed(request))
    tool = request.tool_name
    if tool == PLAN_TOOL:
        given = arguments.get("plan")
        shown = given if isinstance(given, str) and given else plan or ""
        return Ask(request_id, "approval", tool=tool, plan=shown), pending
    if tool == QUESTION_TOOL and (questions := _questions(request.input)):
        return Ask(request_id, "question", tool=tool, questions=questions), pending
    ask = Ask(
        request_id,
        "approval",
        tool=visible(shorten(tool)),
        target=visible(target_of(arguments, cwd)),
        preview=_preview(request, arguments),
        for_thread=bool(pending.suggestions),
        grant=_grant(pending),
    )
    return ask, pending


def _grant(pending: Pending) -> str:
    """The permission that is offered, as text; claude knows it only until its process ends."""
    if not pending.suggestions:
        return ""
    return msgspec.json.encode(pending.suggestions, order="sorted").decode(errors="replace")


def answer_ask(ask: Ask, answer: Answer, pending: Pending) -> bytes:
    """The line that tells claude what was decided."""
    if answer.verdict == "deny":
        return respond(ask.id, {"behavior": "deny", "message": _denial(ask, answer.reason)})
    decision: dict[str, object] = {"behavior": "allow", "updatedInput": pending.input}
    if ask.kind == "question":
        replies = zip(ask.questions, answer.replies, strict=False)
        answers = {question.text: ", ".join(reply) for question, reply in replies if reply}
        decision["updatedInput"] = decode_object(pending.input) | {"answers": answers}
    elif answer.verdict == "allow_thread" and pending.suggestions:
        decision["updatedPermissions"] = pending.suggestions
    return respond(ask.id, decision)


def respond(request_id: str, response: object) -> bytes:
    """The line that answers a control request."""
    return _control_response({
        "subtype": "success",
        "request_id": request_id,
        "response": response,
    })


def respond_error(request_id: str, error: str) -> bytes:
    """The line that refuses a control request, so that claude does not wait for it."""
    return _control_response({"subtype": "error", "request_id": request_id, "error": error})


def clip(text: str, limit: int) -> str:
    """`text` in about `limit` characters: its start, its end, and how much is missing between."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    left_out = len(text) - limit
    return f"{text[:head]}\n… {left_out} characters left out …\n{text[head + left_out :]}"


def _control_response(response: dict[str, object]) -> bytes:
    return msgspec.json.encode({"type": "control_response", "response": response}) + b"\n"


def _narrowed(request: Request) -> tuple[Mapping[str, Raw], ...]:
    # The CLI also offers rules for the project's settings file, which outlive the thread.
    if request.suppress_always_allow_rule or request.tool_name in {PLAN_TOOL, QUESTION_TOOL}:
        return ()
    offered = request.permission_suggestions or ()
    return tuple({**suggestion, "destination": _SESSION} for suggestion in offered)


def _questions(raw: Raw) -> tuple[Question, ...]:
    return tuple(
        Question(
            text=asked.question,
            header=asked.header or "",
            choices=tuple(Choice(o.label, o.description or "") for o in asked.options or ()),
            several=bool(asked.several),
        )
        for asked in decode_questions(raw)
    )


def _denial(ask: Ask, reason: str) -> str:
    if ask.plan is not None:
        return f"The user asks for a revised plan: {reason}" if reason else REVISE
    return reason or (UNANSWERED if ask.kind == "question" else DENIED)


def _preview(request: Request, arguments: Mapping[str, object]) -> str:
    match arguments:
        case {"command": str(command)}:
            shown = _legible(command, PREVIEW_CHARS)
        case {"old_string": str(old), "new_string": str(new)}:
            shown = _diff(old, new, PREVIEW_CHARS)
        case {"edits": edits} if isinstance(edits, list):
            shown = _edits(cast("list[object]", edits))
        case {"content": str(content), "file_path": str()} | {"new_source": str(content)}:
            shown = _diff("", content, PREVIEW_CHARS)
        case _ if arguments:
            pretty = msgspec.json.format(bytes(request.input), indent=2)
            shown = _legible(pretty.decode(errors="replace"), PREVIEW_CHARS)
        case _:
            shown = ""
    if request.decision_reason:
        reason = visible(shorten(request.decision_reason, REASON_CHARS))
        return f"{shown}\n\n{reason}".strip()
    return shown


def _edits(edits: list[object]) -> str:
    share = max(PREVIEW_CHARS // max(len(edits), 1), 200)
    parts: list[str] = []
    for edit in edits:
        match edit:
            case {"old_string": str(old), "new_string": str(new)}:
                parts.append(_diff(old, new, share))
            case _:
                pass
    return clip("\n".join(parts), PREVIEW_CHARS)


def _legible(text: str, limit: int) -> str:
    # Clipped before it is spelled out, for speed, and after, because that can lengthen it.
    return clip(visible(clip(text, limit)), 2 * limit)


def _diff(old: str, new: str, limit: int) -> str:
    share = limit // 2 if old and new else limit
    removed = [f"-{line}" for line in _legible(old, share).splitlines()]
    added = [f"+{line}" for line in _legible(new, share).splitlines()]
    return "\n".join([*removed, *added])
