"""Reads one run of `pi --mode json`: the assistant's last message decides, not the exit code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from takopi.core.events import Action, ActionKind, Completed, Started, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.oneway import OneWay, prompt_after_system
from takopi.engines.pi import schema
from takopi.engines.spec import Said
from takopi.engines.spending import add_counts, add_usage
from takopi.engines.tools import describe_call, keep_call
from takopi.engines.wording import (
    explain_exit,
    explain_failure,
    explain_lost_thread,
    shorten,
    tail,
    unwrap_error,
    with_login,
)

ENGINE = EngineId("pi")

# Linux takes no single argument of 128 KiB.
_ARGUMENT_BYTES = 100_000

_LOST = re.compile(r"No session found matching")
_ELSEWHERE = re.compile(r"Session found in different project: (.+)")


def system_argument(job: EngineJob) -> str | None:
    """The system text as far as it can travel in argv; otherwise it goes in front of the prompt."""
    if not job.system or "\0" in job.system or len(job.system.encode()) > _ARGUMENT_BYTES:
        return None
    return job.system


class PiDialect(OneWay):
    """One run of pi."""

    def __init__(self, job: EngineJob, *, model: str | None) -> None:
        self._job = job
        self._model = model
        self._thread: ResumeToken | None = None
        self._calls: dict[str, tuple[ActionKind, str]] = {}
        self._notes = 0
        self._answer = ""
        self._stop_reason = ""
        self._error_message: str | None = None
        self._finished = False
        self._usage = Usage()

    def opening(self) -> bytes:
        if system_argument(self._job) is None:
            return prompt_after_system(self._job)
        return self._job.prompt.encode()

    def read(self, line: bytes) -> Sequence[Said]:
        match schema.decode(line):
            case schema.MessageUpdate() | schema.ToolUpdate() | schema.MessageStart():
                return ()
            case schema.MessageEnd(message):
                return self._hear(message) if message.role == "assistant" else ()
            case schema.ToolStart(call_id, name, args):
                call = describe_call(name, args, cwd=self._job.cwd)
                keep_call(self._calls, call_id, call)
                return (Action(call_id, *call, phase="started"),)
            case schema.ToolEnd() as ended:
                return (self._step(ended),)
            case schema.Session(session_id):
                return self._start(session_id)
            case schema.AgentStart():
                self._finished = False
            case schema.AgentEnd():
                self._finished = True
            case schema.RetryStart() as retry:
                return (_retry(retry),)
            case schema.CompactionStart():
                return (Action("compaction", "note", "Compacting the conversation", "started"),)
            case schema.CompactionEnd(aborted, error):
                ok = not aborted and not error
                title, detail = "Compacting the conversation", tail(error or "")
                return (Action("compaction", "note", title, "completed", ok, detail),)
            case _:
                pass
        return ()

    def end(self, code: int, stderr: str) -> Completed:
        resumed = self._job.resume
        elsewhere = _ELSEWHERE.search(stderr)
        lost = (
            resumed is not None and self._thread is None and bool(elsewhere or _LOST.search(stderr))
        )
        if lost:
            error = (
                f"pi keeps this thread for {shorten(elsewhere[1])}; start a new one here."
                if elsewhere
                else explain_lost_thread("pi")
            )
        else:
            error = self._explain(code, stderr)
        return Completed(
            ok=error is None,
            answer=self._answer,
            resume=None if lost else self._thread or resumed,
            model=self._model,
            usage=self._usage,
            error=error,
            thread_lost=lost,
        )

    def _start(self, session_id: str) -> Sequence[Said]:
        if self._thread is not None:
            return ()
        asked = self._job.resume
        if asked is not None and "/" in asked.value:
            # pi looks an id up among this folder's sessions only, so a file keeps its own name.
            self._thread = asked
        else:
            self._thread = ResumeToken(ENGINE, session_id)
        started = Started(self._thread, self._model)
        if asked is None or session_id.startswith(asked.value) or session_id in asked.value:
            return (started,)
        # Asked for a file that is not there, pi starts another thread and says nothing.
        title = f"pi did not find thread {asked.value} and answers in {session_id}"
        return started, Action("thread", "warning", shorten(title))

    def _hear(self, message: schema.Message) -> Sequence[Said]:
        blocks = schema.decode_content(message)
        self._stop_reason = message.stop_reason or ""
        self._error_message = message.error_message
        self._model = message.model or self._model
        self._usage = add_usage(self._usage, _spent(message.usage))
        self._answer = "\n\n".join(block.text for block in blocks if block.text).strip()
        works_on = self._stop_reason == "toolUse"
        said = [
            self._note(text)
            for block in blocks
            if (text := block.thinking or (block.text if works_on else None)) and text.strip()
        ]
        if self._stop_reason == "length":
            title = "The answer was cut at the model's length limit"
            said.append(Action("length", "warning", title))
        return said

    def _note(self, text: str) -> Action:
        # Blocks have no id of their own.
        self._notes += 1
        return Action(f"note_{self._notes}", "note", shorten(text))

    def _step(self, ended: schema.ToolEnd) -> Action:
        call_id, failed = ended.tool_call_id, ended.is_error
        kind, title = self._calls.pop(call_id, None) or ("tool", shorten(ended.tool_name))
        detail = tail(schema.decode_result(ended.result)) if failed or kind == "command" else ""
        ok = None if failed is None else not failed
        return Action(call_id, kind, title, "completed", ok, detail)

    def _explain(self, code: int, stderr: str) -> str | None:
        if self._stop_reason == "error":
            return _with_login(explain_failure("pi", self._error_message or ""))
        if self._stop_reason == "aborted":
            return "pi was interrupted."
        if self._finished and self._stop_reason not in {"", "toolUse"}:
            return None
        return _with_login(explain_exit("pi", code, stderr=stderr))


def _retry(retry: schema.RetryStart) -> Action:
    count = f" {retry.attempt} of {retry.max_attempts}" if retry.attempt else ""
    title = shorten(f"Trying again{count}: {unwrap_error(retry.error_message)}")
    return Action("retry", "warning", title)


def _with_login(error: str) -> str:
    told = with_login(error, "pi")
    return told if told == error else f"{told} There, type /login."


def _spent(tokens: schema.Tokens | None) -> Usage:
    if tokens is None:
        return Usage()
    return Usage(
        add_counts(tokens.input, tokens.cache_read, tokens.cache_write),
        tokens.output,
        tokens.cache_read,
        tokens.cost.total if tokens.cost is not None else None,
    )
