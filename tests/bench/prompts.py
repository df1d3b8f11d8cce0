"""How long a prompt takes to be put together, with 200 kB of context in all its sections."""

from __future__ import annotations

import time

from takopi.core.tools import MCPTool, MCPToolResult
from takopi.prompts.aggregator import PromptAggregator
from takopi.prompts.request import AIReplyRequest, PromptContext
from tests.bench.measure import Row, median

CONTEXT_BYTES = 200_000
AIM_MS = 5.0
ROUNDS = 50

_TEXT = "The parser dropped `the last field` when a line ended early.\n```py\nkeep()\n```\n"


def large_context() -> PromptContext:
    """Tools, context, results and a message, of that many bytes together and more."""
    quarter = CONTEXT_BYTES // 4
    text = _TEXT * (quarter // len(_TEXT) + 1)
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "a" * 80}}}
    tools = tuple(
        MCPTool(f"files__read_{number}", _TEXT * 4, schema) for number in range(quarter // 500 + 1)
    )
    request = AIReplyRequest(
        text,
        user_context=text,
        tool_results=tuple(
            MCPToolResult("files__read_1", success=True, output=text[: quarter // 4])
            for _ in range(5)
        ),
        include_mcp_tools=True,
        project_name="z80",
    )
    return PromptContext(request, "cli", cli_tool="claude", system=_TEXT, mcp_tools=tools)


def measure() -> Row:
    """The median of many, in CPU time: nothing else is done meanwhile."""
    aggregator, context = PromptAggregator(), large_context()
    assert len(aggregator.aggregate(context).full_prompt) >= CONTEXT_BYTES
    spent: list[float] = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        aggregator.aggregate(context)
        spent.append((time.thread_time() - began) * 1000)
    copied: list[float] = []
    parts = [section.content for section in aggregator.aggregate(context).sections]
    for _ in range(ROUNDS):
        began = time.thread_time()
        "\n\n".join(parts)
        copied.append((time.thread_time() - began) * 1000)
    return Row(
        "prompt of 200 kB",
        median(spent),
        "ms",
        "its sections joined",
        median(copied),
        f"at most {AIM_MS:g} ms",
        most=AIM_MS,
    )
