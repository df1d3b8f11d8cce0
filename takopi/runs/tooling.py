"""One run as its engine sees it: the prompt, the tools it is offered, and their results.

An engine that answers with tool calls is resumed on the same thread with what they came to; the
chat sees each call as an action, and never the calls themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import trio

from takopi.core.context import Context
from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ids import EngineId
from takopi.core.ports import AnswerPort, Engine, EngineJob
from takopi.core.tools import MCPToolCall, MCPToolResult
from takopi.engines.wording import visible
from takopi.mcp.calls import mentions_calls
from takopi.mcp.loop import CLIMCPResponseHandler
from takopi.mcp.servers import McpServers, Offer
from takopi.prompts.aggregator import get_prompt_aggregator
from takopi.prompts.request import AggregatedPrompt, AIReplyRequest, PromptContext
from takopi.runs.live import Live

GO_ON = "These are the results of your tool calls. Go on with what you were asked."
PREVIEW_CHARS = 3000
"""Of longer arguments, the beginning and the end are shown."""

NOBODY = Answer("deny", reason="nobody answered")


@dataclass(frozen=True, slots=True)
class Prepared:
    """The prompt of a run as it is sent, and the tools that it speaks of."""

    prompt: AggregatedPrompt
    offer: Offer


async def prepare(
    mcp: McpServers | None,
    message: str,
    *,
    engine: EngineId,
    context: Context | None,
    system: str | None,
) -> Prepared:
    """What an engine is sent for a message; servers that are needed for it are started.

    Runs and previews both come from here, and so cannot differ.
    """
    offer = Offer()
    if mcp is not None and mcp.config().servers:
        offer = await mcp.offer(None if context is None else context.project)
    request = AIReplyRequest(message, include_mcp_tools=bool(offer.tools))
    made_from = PromptContext(request, "cli", cli_tool=engine, system=system, mcp_tools=offer.tools)
    return Prepared(get_prompt_aggregator().aggregate(made_from), offer)


def results_prompt(results: Sequence[MCPToolResult]) -> str:
    """What an engine is told of its calls."""
    request = AIReplyRequest(GO_ON, tool_results=tuple(results))
    return get_prompt_aggregator().aggregate(PromptContext(request, "cli")).user


async def converse(live: Live, engine: Engine, job: EngineJob, *, port: AnswerPort) -> Completed:
    """Run the engine to its last answer; `job` has the message and the system text as given."""
    shop = live.shop
    prepared = await prepare(
        shop.mcp,
        job.prompt,
        engine=live.run.engine,
        context=live.run.context,
        system=job.system,
    )
    offer, prompt = prepared.offer, prepared.prompt
    live.notes += offer.problems
    job = replace(job, prompt=prompt.user, system=prompt.system)
    if shop.mcp is None or not offer.tools:
        return await engine.run(job, live.hear, port)
    hearing = _Hearing(live)
    settings = shop.config().mcp

    async def approve(call: MCPToolCall) -> Answer:
        with trio.move_on_after(job.limits.ask_s):
            return await port.ask(approval_of(call))
        return NOBODY

    async def resume(results: str) -> Completed:
        hearing.round += 1
        again = replace(job, prompt=results, resume=live.thread)
        completed = await engine.run(again, hearing.take, port)
        live.thread = completed.resume or live.thread
        return completed

    handler = CLIMCPResponseHandler(
        client=shop.mcp,
        tools=offer.tools,
        approve=approve,
        format_results=results_prompt,
        emit=live.hear,
        max_iterations=settings.max_iterations,
        call_s=settings.call_s,
    )
    completed = await engine.run(job, hearing.take, port)
    live.thread = completed.resume or live.thread
    return await handler.follow(completed, resume)


@dataclass(slots=True)
class _Hearing:
    """What the engine says, round by round, as the events of one run."""

    live: Live
    round: int = 0

    def take(self, event: Event) -> None:
        if isinstance(event, Started):
            if self.round == 0 or event.resume != self.live.thread:
                self.live.hear(event)
        elif event.kind == "note" and mentions_calls(f"{event.title}\n{event.detail}"):
            return  # the calls themselves are shown as actions
        else:
            self.live.hear(self._named(event))

    def _named(self, event: Action) -> Action:
        """Ids are an invocation's own; the run has several."""
        return replace(event, id=f"{self.round}:{event.id}") if self.round else event


def approval_of(call: MCPToolCall) -> Ask:
    """What a person is asked about a call: its arguments, with nothing invisible in them.

    Of long ones it shows the beginning and the end, and says how much is between.
    """
    arguments = msgspec.json.format(msgspec.json.encode(call.arguments)).decode()
    if (left_out := len(arguments) - PREVIEW_CHARS) > 0:
        half = PREVIEW_CHARS // 2
        between = f"\n[{left_out} characters are not shown]\n"
        arguments = f"{arguments[:half]}{between}{arguments[-half:]}"
    return Ask(
        id=f"mcp:{call.name}",
        kind="approval",
        tool=visible(call.name),
        preview=visible(arguments),
        for_thread=True,
        grant=f"mcp:{call.name}",
    )
