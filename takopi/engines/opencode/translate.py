"""Reads one run of `opencode run --format json`: a step that failed says so, whatever its state."""

from __future__ import annotations

import re
from collections.abc import Sequence

from takopi.core.events import Action, Completed, Started, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.oneway import OneWay, prompt_after_system
from takopi.engines.opencode import schema
from takopi.engines.spec import Said
from takopi.engines.spending import add_counts, add_usage
from takopi.engines.tools import describe_call, describe_plan
from takopi.engines.wording import (
    explain_exit,
    explain_failure,
    explain_lost_thread,
    shorten,
    tail,
    with_login,
)

ENGINE = EngineId("opencode")
LOGIN = "opencode auth login"

_LOST = re.compile(r"(?i)session not found")
_REFUSED = re.compile(r"permission requested: (.+?);? auto-rejecting")
_LOGGED = re.compile(r"(?m)^timestamp=\S+ level=.*$")


class OpencodeDialect(OneWay):
    """One run of opencode."""

    def __init__(self, job: EngineJob, *, model: str | None) -> None:
        self._job = job
        self._model = model
        self._thread: ResumeToken | None = None
        self._message_id = ""
        self._texts: list[str] = []
        self._unshown: list[schema.TextPart] = []
        self._stop_reason = ""
        self._failed_step = ""
        self._failure: schema.ErrorCause | None = None
        self._usage = Usage()

    def opening(self) -> bytes:
        return prompt_after_system(self._job)

    def read(self, line: bytes) -> Sequence[Said]:
        said = schema.decode(line)
        started = self._start(said.session_id) if self._thread is None else ()
        match said:
            case schema.Text():
                return *started, *self._hear(said.part)
            case schema.Reasoning():
                title = shorten(said.part.text)
                note = (Action(said.part.id, "note", title),) if title else ()
                return *started, *self._flush(), *note
            case schema.ToolUse():
                return *started, *self._flush(), self._step(said.part)
            case schema.StepStart():
                self._stop_reason = ""
            case schema.StepFinish():
                return *started, *self._finish(said.part)
            case schema.Error():
                self._failure = said.error
            case schema.Head():
                pass
        return started

    def end(self, code: int, stderr: str) -> Completed:
        resumed = self._job.resume
        lost = resumed is not None and self._thread is None and bool(_LOST.search(stderr))
        error = self._explain(code, stderr, lost=lost)
        return Completed(
            ok=error is None,
            answer="\n\n".join(self._texts),
            resume=None if lost else self._thread or resumed,
            model=self._model,
            usage=self._usage,
            error=error,
            thread_lost=lost,
        )

    def _start(self, session_id: str) -> tuple[Started, ...]:
        if not session_id:
            return ()
        self._thread = ResumeToken(ENGINE, session_id)
        return (Started(self._thread, self._model),)

    def _hear(self, part: schema.TextPart) -> Sequence[Said]:
        text = part.text.strip()
        if not text:
            return ()
        before: Sequence[Said] = ()
        if part.message_id != self._message_id:
            before = self._flush()
            self._message_id = part.message_id
            self._texts.clear()
        self._texts.append(text)
        self._unshown.append(part)
        return before

    def _step(self, part: schema.ToolPart) -> Action:
        state = part.state
        kind, title = describe_call(part.tool, state.input, cwd=self._job.cwd)
        detail = ""
        if part.tool == "todowrite" and (todos := schema.decode_todos(state.input)):
            steps = [(todo.content, todo.status == "completed") for todo in todos]
            kind, (title, detail) = "note", describe_plan(steps)
        ok = {"completed": True, "error": False}.get(state.status)
        if kind == "command" and ok:
            # A command that failed is still a tool that worked.
            code = state.metadata.exit if state.metadata is not None else None
            ok = None if code is None else code == 0
            detail = tail(state.output or "")
            if code:
                detail = tail(f"exit {code}\n{detail}")
        if ok is False and state.error:
            detail = tail(state.error)
        self._failed_step = f"{title}: {detail}" if state.status == "error" else ""
        return Action(part.id, kind, title, "completed", ok, detail)

    def _finish(self, part: schema.FinishPart) -> Sequence[Said]:
        self._stop_reason = part.reason
        self._usage = add_usage(self._usage, _spent(part))
        if part.reason == "length":
            return (Action("length", "warning", "The answer was cut at the model's length limit"),)
        return ()

    def _flush(self) -> tuple[Action, ...]:
        """What opencode said before it went on working: notes, now that it is not the answer."""
        notes = tuple(Action(part.id, "note", shorten(part.text)) for part in self._unshown)
        self._unshown.clear()
        return notes

    def _explain(self, code: int, stderr: str, *, lost: bool) -> str | None:
        if lost:
            return explain_lost_thread("opencode")
        if self._failure is not None:
            return with_login(explain_failure("opencode", _cause(self._failure, stderr)), LOGIN)
        if code != 0 or not self._stop_reason:
            words = _LOGGED.sub("", stderr)
            return with_login(explain_exit("opencode", code, stderr=words), LOGIN)
        if self._stop_reason == "tool-calls" and (refused := _REFUSED.search(stderr)):
            # It ends the run with code 0 and without a word.
            return (
                f"opencode stopped because it may not use {shorten(refused[1])}; "
                "allow that under `permission` in its configuration."
            )
        if self._stop_reason == "tool-calls" and self._failed_step:
            return f"opencode stopped after a failed step: {shorten(self._failed_step, 300)}"
        return None


def _cause(error: schema.ErrorCause, stderr: str) -> str:
    data = error.data or schema.ErrorData()
    # "Check server logs for details", says the line, and gives the number of the entry.
    entry = rf'\bref={re.escape(data.ref)} error="(?:\w+: )?((?:[^"\\]|\\.)+)"' if data.ref else ""
    if entry and (logged := re.search(entry, stderr)):
        return logged[1].replace("\\n", " ").replace('\\"', '"')
    message = data.message or error.name
    return f"{message} ({data.status_code})" if data.status_code else message


def _spent(part: schema.FinishPart) -> Usage:
    tokens = part.tokens or schema.Tokens()
    cache = tokens.cache or schema.Cache()
    return Usage(
        add_counts(tokens.input, cache.read, cache.write),
        add_counts(tokens.output, tokens.reasoning),
        cache.read,
        part.cost,
    )
