"""One run of claude: its lines become takopi's vocabulary, and decisions become its control lines.

Nothing that grows is kept: a tool call is forgotten with its result, an ask with its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from takopi.core.events import Action, Answer, Ask, Completed, Started, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.claude.asks import Pending, answer_ask, open_ask, respond, respond_error
from takopi.engines.claude.ending import explain_failure, is_thread_lost, spent
from takopi.engines.claude.schema import (
    Assistant,
    Block,
    ControlCancel,
    ControlRequest,
    RateLimitEvent,
    Request,
    Result,
    StreamEvent,
    System,
    User,
    decode,
    decode_object,
    decode_request,
    decode_shown,
)
from takopi.engines.claude.tools import Call, describe_call, describe_outcome
from takopi.engines.spec import Finished, Reply, Said, Withdrawn
from takopi.engines.spending import add_usage
from takopi.engines.tools import keep_call
from takopi.engines.wording import DETAIL_CHARS, shorten

if TYPE_CHECKING:
    from takopi.engines.claude.spec import ClaudeSettings

CLAUDE = EngineId("claude")

_LIMITS = {
    "five_hour": "5-hour limit",
    "seven_day": "weekly limit",
    "seven_day_opus": "weekly Opus limit",
    "seven_day_sonnet": "weekly Sonnet limit",
    "overage": "extra usage limit",
}
_API_ERRORS = {"overloaded": "The API is overloaded", "rate_limit": "The API limits the rate"}


class ClaudeDialect:
    """How one run of claude talks."""

    def __init__(self, settings: ClaudeSettings, job: EngineJob) -> None:
        self._settings = settings
        self._job = job
        self._resume: ResumeToken | None = None
        self._model: str | None = None
        self._state: str | None = None
        self._result: Result | None = None
        self._finished = False
        self._usage = Usage()
        self._text = ""
        self._text_shown = True
        self._notes = 0
        self._retries = 0
        self._interrupts = 0
        self._retry: Action | None = None
        self._calls: dict[str, Call] = {}
        self._pending: dict[str, Pending] = {}
        self._news: dict[str, Callable[[System], Iterator[Said]]] = {
            "init": self._init,
            "session_state_changed": self._state_changed,
            "api_retry": self._api_retry,
            "permission_denied": self._permission_denied,
            "task_started": self._task_started,
            "task_notification": self._task_ended,
            "informational": self._informational,
            "model_refusal_fallback": self._informational,
            "compact_boundary": self._compacted,
        }

    @property
    def two_way(self) -> bool:
        return True

    def opening(self) -> bytes:
        initialize: dict[str, object] = {"subtype": "initialize", "hooks": None}
        if self._job.system or self._settings.append_system_prompt:
            # Else a resumed thread keeps the system prompt of its first run.
            initialize["systemPromptSnapshot"] = False
        prompt = {
            "type": "user",
            "message": {"role": "user", "content": self._job.prompt},
            "parent_tool_use_id": None,
            "session_id": "default",
        }
        return _request("initialize", initialize) + msgspec.json.encode(prompt) + b"\n"

    def read(self, line: bytes) -> Sequence[Said]:
        match decode(line):
            case StreamEvent():
                return ()
            case Assistant() as spoken:
                return [*self._assistant(spoken)]
            case User() as told:
                return [*self._user(told)]
            case System() as news:
                handle = self._news.get(news.subtype)
                return [*handle(news)] if handle else ()
            case ControlRequest() as asked:
                return [*self._control_request(asked)]
            case ControlCancel(request_id=ask_id):
                return [Withdrawn(ask_id)] if self._pending.pop(ask_id, None) else ()
            case RateLimitEvent() as event:
                return [*_rate_limit(event)]
            case Result() as result:
                return [*self._turn_ended(result)]
            case _:
                return ()

    def answer(self, ask: Ask, answer: Answer) -> bytes:
        pending = self._pending.pop(ask.id, None)
        return b"" if pending is None else answer_ask(ask, answer, pending)

    def interrupt(self) -> bytes:
        self._interrupts += 1
        return _request(f"interrupt-{self._interrupts}", {"subtype": "interrupt"})

    def end(self, code: int, stderr: str) -> Completed:
        result = self._result
        resume = self._resume or self._job.resume
        if result is not None and not result.is_error:
            return Completed(
                ok=True,
                answer=(result.result or self._text).strip(),
                resume=resume,
                model=self._model,
                usage=self._usage,
            )
        lost = is_thread_lost(result, stderr)
        return Completed(
            ok=False,
            answer=self._text.strip(),
            resume=None if lost else resume,
            model=self._model,
            usage=self._usage,
            error=explain_failure(
                result, code=code, stderr=stderr, use_api_billing=self._settings.use_api_billing
            ),
            thread_lost=lost,
        )

    def _init(self, news: System) -> Iterator[Said]:
        if self._resume is None and news.session_id:
            self._resume = ResumeToken(CLAUDE, news.session_id)
            self._model = news.model
            yield Started(self._resume, news.model)

    def _state_changed(self, news: System) -> Iterator[Said]:
        self._state = news.state
        yield from self._finish()

    def _turn_ended(self, result: Result) -> Iterator[Said]:
        yield from self._end_retry(ok=not result.is_error)
        self._result = result
        self._usage = add_usage(self._usage, spent(result))
        self._calls = {id_: call for id_, call in self._calls.items() if call.in_background}
        yield from self._finish()

    def _finish(self) -> Iterator[Said]:
        # A result ends a turn. Subagents in the background go on, may ask, and bring further turns:
        # where the CLI reports its state, only an idle one has nothing more to say.
        if self._result is not None and not self._finished and self._state in {None, "idle"}:
            self._finished = True
            yield Finished()

    def _assistant(self, spoken: Assistant) -> Iterator[Said]:
        # What the CLI says of a failed call of the API stands in the result, too.
        if spoken.error is not None or spoken.message is None:
            return
        yield from self._end_retry(ok=True)
        content = spoken.message.content
        for block in content if isinstance(content, list) else ():
            if block.type == "tool_use" and block.id:
                if spoken.parent_tool_use_id is None:
                    yield from self._tool_use(block, block.id)
                else:
                    yield from self._subagent_step(block, spoken.parent_tool_use_id)
            elif block.type == "text" and block.text and spoken.parent_tool_use_id is None:
                yield from self._show_text()
                self._text = block.text
                self._text_shown = False

    def _tool_use(self, block: Block, call_id: str) -> Iterator[Said]:
        yield from self._show_text()
        call = self._describe(block)
        keep_call(self._calls, call_id, call)
        yield Action(call_id, call.kind, call.title, "started")

    def _subagent_step(self, block: Block, parent_id: str) -> Iterator[Said]:
        # One line a subagent: what it does now, not everything that it did.
        if parent := self._calls.get(parent_id):
            step = self._describe(block).title
            yield Action(parent_id, parent.kind, parent.title, "updated", detail=step)

    def _user(self, told: User) -> Iterator[Said]:
        content = told.message.content if told.message else None
        for block in content if isinstance(content, list) else ():
            if block.type != "tool_result" or not (call_id := block.tool_use_id):
                continue
            call = self._calls.get(call_id)
            if call is None or call.in_background:
                continue
            del self._calls[call_id]
            ok = not block.is_error
            shown = decode_shown(block.content) if call.chatty or not ok else ""
            yield _completed(call_id, call, ok=ok, detail=describe_outcome(call, shown))

    def _task_started(self, news: System) -> Iterator[Said]:
        # A subagent in the background gets its tool result at once; a shell there is only launched.
        call_id = news.tool_use_id or ""
        call = self._calls.get(call_id)
        if call is not None and call.kind == "subagent" and news.is_backgrounded:
            self._calls[call_id] = replace(call, in_background=True)
        yield from ()

    def _task_ended(self, news: System) -> Iterator[Said]:
        call = self._calls.get(news.tool_use_id or "")
        if news.tool_use_id and call is not None and call.kind == "subagent":
            del self._calls[news.tool_use_id]
            detail = shorten(news.summary or "", DETAIL_CHARS)
            yield _completed(news.tool_use_id, call, ok=news.status == "completed", detail=detail)

    def _show_text(self) -> Iterator[Said]:
        """Show the last text as a remark, now that it has turned out not to be the answer."""
        if not self._text_shown:
            self._text_shown = True
            self._notes += 1
            title = shorten(self._text)
            detail = shorten(self._text, DETAIL_CHARS)
            yield Action(
                f"note-{self._notes}", "note", title, detail="" if detail == title else detail
            )

    def _api_retry(self, news: System) -> Iterator[Said]:
        cause = _API_ERRORS.get(news.error or "") or "The API does not answer"
        if news.error_status is not None:
            known = _API_ERRORS.get(news.error or "", "The API failed")
            cause = f"{known} ({news.error_status})"
        delay_s = max(round((news.retry_delay_ms or 0) / 1000), 1)
        title = f"{cause}: retry {news.attempt or 1} of {news.max_retries or '?'} in {delay_s} s"
        if self._retry is None:
            self._retries += 1
            self._retry = Action(f"retry-{self._retries}", "warning", title, "started")
        else:
            self._retry = replace(self._retry, title=title, phase="updated")
        yield self._retry

    def _end_retry(self, *, ok: bool) -> Iterator[Said]:
        if self._retry is not None:
            yield replace(self._retry, phase="completed", ok=ok)
            self._retry = None

    def _permission_denied(self, news: System) -> Iterator[Said]:
        call = self._calls.get(news.tool_use_id or "")
        what = " ".join(filter(None, (news.tool_name, call.title if call else None))) or "a tool"
        yield Action(
            f"denied-{news.tool_use_id or what}",
            "warning",
            shorten(f"Not permitted: {what}"),
            ok=False,
            detail=shorten(news.message or "", DETAIL_CHARS),
        )

    def _informational(self, news: System) -> Iterator[Said]:
        if news.content and (news.level == "warning" or news.subtype == "model_refusal_fallback"):
            self._notes += 1
            yield Action(f"note-{self._notes}", "warning", shorten(news.content))

    def _compacted(self, _news: System) -> Iterator[Said]:
        self._notes += 1
        yield Action(f"note-{self._notes}", "note", "The conversation was compacted")

    def _control_request(self, asked: ControlRequest) -> Iterator[Said]:
        try:
            request = decode_request(asked.request)
        except msgspec.DecodeError:
            yield Reply(respond_error(asked.request_id, "takopi does not understand this request"))
            return
        if request.subtype == "can_use_tool":
            yield self._ask(asked.request_id, request)
        elif request.subtype == "elicitation":
            yield Reply(respond(asked.request_id, {"action": "decline"}))
            server = shorten(request.mcp_server_name or "unknown", 60)
            self._notes += 1
            title = f"The MCP server {server} asked for input that takopi cannot show: declined"
            yield Action(f"note-{self._notes}", "warning", shorten(title), ok=False)
        else:
            error = f"takopi does not answer {shorten(request.subtype, 60)}"
            yield Reply(respond_error(asked.request_id, error))

    def _ask(self, request_id: str, request: Request) -> Ask:
        call = self._calls.get(request.tool_use_id or "")
        plan = call.plan if call else None
        ask, pending = open_ask(request_id, request, plan=plan, cwd=self._job.cwd)
        self._pending[request_id] = pending
        return ask

    def _describe(self, block: Block) -> Call:
        return describe_call(block.name or "", decode_object(block.input), self._job.cwd)


def _request(request_id: str, request: dict[str, object]) -> bytes:
    line = {"type": "control_request", "request_id": request_id, "request": request}
    return msgspec.json.encode(line) + b"\n"


def _completed(call_id: str, call: Call, *, ok: bool, detail: str) -> Action:
    return Action(call_id, call.kind, call.title, "completed", ok, detail)


def _rate_limit(event: RateLimitEvent) -> Iterator[Said]:
    info = event.rate_limit_info
    if info is None or info.status not in {"allowed_warning", "rejected"}:
        return
    name = _LIMITS.get(info.rate_limit_type or "", "usage limit")
    if info.status == "rejected":
        title = f"The {name} is reached"
    elif info.utilization is not None:
        title = f"Close to the {name}: {info.utilization:.0%} used"
    else:
        title = f"Close to the {name}"
    reset = _utc(info.resets_at)
    title = f"{title}, resets {reset}" if reset else title
    ok = False if info.status == "rejected" else None
    yield Action(f"limit-{info.rate_limit_type or 'usage'}", "warning", shorten(title), ok=ok)


def _utc(seconds: float | None) -> str:
    if seconds is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%d %b %H:%M} UTC"
    except (OverflowError, OSError, ValueError):
        return ""
