"""Carries out the tool calls of an engine's answer, and gives the results back until it is done.

Each call is checked, allowed by the config or a person, bounded in time and size; whatever goes
wrong with it is its result. Raw calls are never left in an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import structlog
import trio

from takopi.core.errors import TakopiError
from takopi.core.events import Action, Answer, Completed, Usage
from takopi.core.tools import MCPTool, MCPToolCall, MCPToolResult
from takopi.mcp.arguments import check_arguments
from takopi.mcp.calls import MAX_CALLS, mentions_calls, parse_tool_calls, text_around

MAX_ITERATIONS = 10
CALL_S = 120.0
NO_THREAD = "It wanted to use tools, but keeps no conversation that their results could go back to."
NO_CALL = "this is no call: it needs a name and arguments, in valid JSON"
ALL_FAILED = "It stopped because its tool calls failed."

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.mcp")


class ToolClient(Protocol):
    """Where tools are called: `McpServers`."""

    def is_allowed(self, name: str) -> bool:
        """Whether this tool runs without asking."""
        ...

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call it; the caller sets the deadline."""
        ...


Approve = Callable[[MCPToolCall], Awaitable[Answer]]
"""Asks a person about a call that the config does not allow by itself."""

Resume = Callable[[str], Awaitable[Completed]]
"""Lets the engine go on in the same thread with this prompt."""


@dataclass(slots=True)
class CLIMCPResponseHandler:
    """The tools of one run.

    `format_results` makes the prompt of the results; `emit` hears of every call.
    """

    client: ToolClient
    tools: Sequence[MCPTool]
    approve: Approve
    format_results: Callable[[Sequence[MCPToolResult]], str]
    emit: Callable[[Action], None]
    max_iterations: int = MAX_ITERATIONS
    call_s: float = CALL_S
    _calls: int = field(default=0, init=False)

    def parse_tool_calls(self, response: str) -> list[MCPToolCall]:
        """The calls that an answer holds."""
        return parse_tool_calls(response) if self.tools else []

    async def execute_tools(self, calls: Sequence[MCPToolCall]) -> list[MCPToolResult]:
        """Execute each call, one after the other, and say what came of it.

        Those over `MAX_CALLS` are not made, and have one result together.
        """
        results = [await self._execute(call) for call in calls[:MAX_CALLS]]
        if (left_out := len(calls) - MAX_CALLS) > 0:
            why = f"only {MAX_CALLS} calls are made for one answer, {left_out} are left out"
            self._calls += 1
            over = Action(f"mcp-{self._calls}", "tool", f"{left_out} more calls", "completed")
            self.emit(replace(over, ok=False, detail=why))
            results.append(_failed(calls[MAX_CALLS], why))
        return results

    def format_results_prompt(self, results: Sequence[MCPToolResult]) -> str:
        """The prompt that tells the engine what its calls came to."""
        return self.format_results(results)

    async def follow(self, completed: Completed, resume: Resume) -> Completed:
        """Go on for as long as the engine answers with calls; its last answer holds none."""
        rounds, all_failed = 0, False
        usage = completed.usage
        while completed.ok and (calls := self.parse_tool_calls(completed.answer)):
            if completed.resume is None:
                return _stopped(completed, usage, NO_THREAD)
            if all_failed:
                return _stopped(completed, usage, ALL_FAILED)
            if rounds >= self.max_iterations:
                log.warning("tools.iteration_limit_reached", rounds=rounds)
                why = f"stopped after {rounds} tool rounds"
                return _stopped(completed, usage, why)
            results = await self.execute_tools(calls)
            all_failed = not any(result.success for result in results)
            rounds += 1
            before = completed
            completed = await resume(self.format_results_prompt(results))
            completed = replace(
                completed,
                resume=completed.resume or before.resume,
                model=completed.model or before.model,
            )
            usage = _add(usage, completed.usage)
        answer = completed.answer
        if self.tools and mentions_calls(answer):
            answer = text_around(answer)
        return replace(completed, answer=answer, usage=usage)

    async def _execute(self, call: MCPToolCall) -> MCPToolResult:
        self._calls += 1
        step = Action(f"mcp-{self._calls}", "tool", call.name or "a tool without a name", "started")
        self.emit(step)
        try:
            result = await self._attempt(call)
        except TakopiError as error:
            result = _failed(call, error.what)
        except Exception as error:  # a server must not end the run, whatever it does to the SDK
            log.exception("tool.failed", tool=call.name)
            result = _failed(call, f"the call failed: {type(error).__name__}")
        detail = "" if result.success else result.output
        self.emit(replace(step, phase="completed", ok=result.success, detail=detail))
        return result

    async def _attempt(self, call: MCPToolCall) -> MCPToolResult:
        if not call.name:
            return _failed(call, NO_CALL)
        tool = next((tool for tool in self.tools if tool.name == call.name), None)
        if tool is None:
            return _failed(call, "there is no tool of this name; names must be exact")
        arguments = check_arguments(tool.schema, call.arguments)
        if not self.client.is_allowed(tool.name):
            answer = await self.approve(call)
            if answer.verdict == "deny":
                reason = f": {answer.reason}" if answer.reason else ""
                return _failed(call, f"the person denied this call{reason}")
        with trio.move_on_after(self.call_s) as deadline:
            output = await self.client.call(tool.name, arguments)
            return MCPToolResult(call.name, success=True, output=output)
        assert deadline.cancelled_caught  # ruff: ignore[assert] nothing else leads here
        return _failed(call, f"the tool did not answer within {self.call_s:g} s")


def _stopped(completed: Completed, usage: Usage, why: str) -> Completed:
    return replace(completed, answer=text_around(completed.answer) or why, usage=usage)


def _failed(call: MCPToolCall, why: str) -> MCPToolResult:
    return MCPToolResult(call.name, success=False, output=why)


def _add(one: Usage, other: Usage) -> Usage:
    def total(a: float | None, b: float | None) -> float | None:
        return b if a is None else a if b is None else a + b

    def tokens(a: int | None, b: int | None) -> int | None:
        return b if a is None else a if b is None else a + b

    return Usage(
        input_tokens=tokens(one.input_tokens, other.input_tokens),
        output_tokens=tokens(one.output_tokens, other.output_tokens),
        cached_tokens=tokens(one.cached_tokens, other.cached_tokens),
        cost_usd=total(one.cost_usd, other.cost_usd),
    )
