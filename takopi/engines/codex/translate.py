"""Reads one run of `codex exec --json`: items become actions, and only the turn's end is an end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from takopi.core.events import Action, Completed, Phase, Started, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.codex import schema
from takopi.engines.oneway import OneWay, prompt_after_system
from takopi.engines.spec import Said
from takopi.engines.tools import describe_plan, quote
from takopi.engines.wording import (
    TITLE_CHARS,
    clip,
    explain_exit,
    explain_failure,
    explain_lost_thread,
    shorten,
    tail,
    unwrap_error,
    with_login,
)
from takopi.kit.cwd import relativize_command, relativize_path

ENGINE = EngineId("codex")
LOGIN = "codex login"

_SHELL = re.compile(r"(?s)(?:\S*/)?(?:ba|da|z)?sh\s+-l?c\s+(.+)")
_LOST = re.compile(r"no rollout found")
_OUTCOMES = {"completed": True, "failed": False, "declined": False}


class CodexDialect(OneWay):
    """One run of codex."""

    def __init__(self, job: EngineJob, *, model: str | None) -> None:
        self._job = job
        self._model = model
        self._thread: ResumeToken | None = None
        self._answer = ""
        self._unshown: schema.AgentMessage | None = None
        self._done = False
        self._failure: str | None = None
        self._trouble = ""
        self._usage = Usage()

    def opening(self) -> bytes:
        # codex has a config key for instructions, but a resumed thread ignores it, and it would
        # take the place of the person's own.
        return prompt_after_system(self._job)

    def read(self, line: bytes) -> Sequence[Said]:
        match schema.decode(line):
            case schema.ItemStarted(item):
                return self._show(item, "started")
            case schema.ItemCompleted(item):
                return self._show(item, "completed")
            case schema.ItemUpdated(item):
                return self._show(item, "updated")
            case schema.ThreadStarted(thread_id):
                return self._start(thread_id)
            case schema.TurnCompleted(tokens):
                self._done, self._failure = True, None
                self._usage = self._spent(tokens)
            case schema.TurnFailed(error):
                self._done, self._failure = False, error.message if error else ""
            case schema.Error(message):
                # It may be "Reconnecting…", so it decides nothing, and the next one replaces it.
                self._trouble = message
                return (_warning("error", unwrap_error(message)),)
            case _:
                pass
        return ()

    def end(self, code: int, stderr: str) -> Completed:
        resumed = self._job.resume
        lost = resumed is not None and self._thread is None and bool(_LOST.search(stderr))
        error = None if self._done else self._explain(code, stderr, lost=lost)
        return Completed(
            ok=error is None,
            answer=self._answer,
            resume=None if lost else self._thread or resumed,
            model=self._model,
            usage=self._usage,
            error=error,
            thread_lost=lost,
        )

    def _start(self, thread_id: str) -> Sequence[Said]:
        if self._thread is not None:
            return ()
        self._thread = ResumeToken(ENGINE, thread_id)
        started = Started(self._thread, self._model)
        asked = self._job.resume
        if asked is None or asked == self._thread:
            return (started,)
        # Asked for a thread by a name that it does not know, codex starts another and says nothing.
        title = f"codex did not find thread {asked.value} and answers in {thread_id}"
        return started, Action("thread", "warning", shorten(title))

    def _show(self, item: schema.Item, phase: Phase) -> Sequence[Said]:
        match item:
            case schema.AgentMessage():
                if phase != "completed":
                    return ()
                before = self._flush()
                self._answer = item.text.strip()
                self._unshown = item
                return before
            case schema.ErrorItem():
                return (_warning(item.id, item.message),)
            case schema.TodoList():
                # It is completed at the end of the turn, after the answer.
                title, detail = describe_plan([(todo.text, todo.completed) for todo in item.items])
                return (Action(item.id, "note", title, phase, detail=detail),)
            case schema.Reasoning():
                title = shorten(item.text.replace("**", ""))
                return (*self._flush(), Action(item.id, "note", title, phase)) if title else ()
            case _:
                return *self._flush(), self._step(item, phase)

    def _step(
        self,
        item: schema.CommandExecution
        | schema.FileChange
        | schema.McpToolCall
        | schema.CollabToolCall
        | schema.WebSearch,
        phase: Phase,
    ) -> Action:
        ended = phase == "completed"
        match item:
            case schema.CommandExecution():
                detail = tail(item.aggregated_output or "") if ended else ""
                ok = _outcome(item.status) if ended else None
                if ended and item.exit_code:
                    ok, detail = False, tail(f"exit {item.exit_code}\n{detail}")
                return Action(
                    item.id,
                    "command",
                    shorten(relativize_command(_command(item.command), self._job.cwd)),
                    phase,
                    ok,
                    detail,
                )
            case schema.FileChange():
                cwd = self._job.cwd
                changes = [f"{c.kind} {relativize_path(c.path, cwd)}" for c in item.changes[:100]]
                title = shorten(", ".join(changes) or "change files")
                ok = _outcome(item.status) if ended else None
                detail = clip("\n".join(changes)) if ended and len(changes) > 1 else ""
                return Action(item.id, "file_change", title, phase, ok, detail)
            case schema.McpToolCall():
                title = shorten(f"{item.server}.{item.tool} {quote(item.arguments)}")
                ok = _outcome(item.status) if ended else None
                if ended and item.error is not None:
                    ok = False
                return Action(item.id, "tool", title, phase, ok, _mcp_detail(item) if ended else "")
            case schema.CollabToolCall():
                title = shorten(f"{item.tool}: {item.prompt}" if item.prompt else item.tool)
                return Action(
                    item.id, "subagent", title, phase, _outcome(item.status) if ended else None
                )
            case schema.WebSearch(query=query, action=action):
                target = query or (action and (action.query or action.url)) or "web search"
                return Action(item.id, "web_search", shorten(target), phase)

    def _flush(self) -> tuple[Action, ...]:
        """What codex said before it went on working: a note, now that it is not the answer."""
        message, self._unshown = self._unshown, None
        if message is None or not (title := shorten(message.text)):
            return ()
        return (Action(message.id, "note", title),)

    def _spent(self, tokens: schema.Tokens | None) -> Usage:
        # codex counts from the beginning of the thread: of a resumed one, the share of this run
        # cannot be known, and the whole would be counted twice.
        if tokens is None or self._job.resume is not None:
            return Usage()
        return Usage(tokens.input_tokens, tokens.output_tokens, tokens.cached_input_tokens)

    def _explain(self, code: int, stderr: str, *, lost: bool) -> str:
        if lost:
            return explain_lost_thread("codex")
        if self._failure is not None:
            return with_login(explain_failure("codex", self._failure or self._trouble), LOGIN)
        return with_login(explain_exit("codex", code, stderr=f"{self._trouble}\n{stderr}"), LOGIN)


def _command(command: str) -> str:
    """The command without the shell that codex wraps around it."""
    wrapped = _SHELL.fullmatch(command)
    if wrapped is None:
        return command
    script = wrapped[1]
    if script[0] == script[-1] == "'" and script.count("'") == 2:
        return script[1:-1]
    if len(script) > TITLE_CHARS * 8:
        return script.strip("'\"")
    try:
        words = shlex.split(script)
    except ValueError:
        return script
    return words[0] if len(words) == 1 else script


def _warning(action_id: str, message: str) -> Action:
    detail = clip(message) if len(message) > TITLE_CHARS else ""
    return Action(action_id, "warning", shorten(message), detail=detail)


def _outcome(status: str) -> bool | None:
    return _OUTCOMES.get(status)


def _mcp_detail(item: schema.McpToolCall) -> str:
    if item.error is not None:
        return tail(item.error.message)
    blocks = item.result.content if item.result is not None else ()
    return tail("\n".join(block.text for block in blocks if block.text))
