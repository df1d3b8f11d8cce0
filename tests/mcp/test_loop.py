from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path

import pytest
import structlog.testing

from takopi.config.schema import McpServer
from takopi.core.events import Action, Answer, Completed, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.tools import MCPToolCall, MCPToolResult
from takopi.mcp.loop import ALL_FAILED, NO_THREAD, CLIMCPResponseHandler
from takopi.mcp.servers import McpServers
from takopi.runs.tooling import results_prompt
from tests.mcp.rig import http_server, open_servers, stdio

THREAD = ResumeToken(EngineId("demo"), "0123")
SPENT = Usage(input_tokens=1, cost_usd=0.5)


def calls(*named: tuple[str, object]) -> str:
    return json.dumps({"tool_calls": [{"name": n, "arguments": a} for n, a in named]})


ADD = ("t__add", {"a": 1, "b": 2})
NOTHING: dict[str, object] = {}


def said(answer: str) -> Completed:
    return Completed(ok=True, answer=answer, resume=THREAD, usage=SPENT)


@dataclass
class Story:
    """An engine that gives these answers in turn, and a person who gives one verdict."""

    answers: list[str]
    verdict: Answer = field(default_factory=lambda: Answer("allow"))
    prompts: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])
    actions: list[Action] = field(default_factory=list[Action])

    async def resume(self, prompt: str) -> Completed:
        self.prompts.append(prompt)
        return said(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

    async def approve(self, call: MCPToolCall) -> Answer:
        self.asked.append(call.name)
        return self.verdict

    async def handler(self, servers: McpServers, *, call_s: float = 60) -> CLIMCPResponseHandler:
        return CLIMCPResponseHandler(
            client=servers,
            tools=(await servers.offer(None)).tools,
            approve=self.approve,
            format_results=results_prompt,
            emit=self.actions.append,
            call_s=call_s,
        )


async def results_of(
    tmp_path: Path, *named: tuple[str, object], call_s: float = 60
) -> Sequence[MCPToolResult]:
    async with open_servers(tmp_path, {"t": stdio(allow=("*",))}) as servers:
        handler = await Story([""]).handler(servers, call_s=call_s)
        return await handler.execute_tools(list(starmap(MCPToolCall, named)))


async def test_detected_tools_are_executed_with_success_and_output(tmp_path: Path) -> None:
    assert await results_of(tmp_path, ADD, ("t__echo", {"text": "hi"})) == [
        MCPToolResult("t__add", success=True, output="3"),
        MCPToolResult("t__echo", success=True, output="hi"),
    ]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("t__ad", NOTHING), "there is no tool of this name"),
        (("T__add", {"a": 1, "b": 2}), "there is no tool of this name"),
        (("t__add", {"a": 1}), "'b' is a required property"),
        (("t__add", [1, 2]), "must be a JSON object"),
        (("t__fail", NOTHING), "Error executing tool fail"),
        (("t__die", NOTHING), "the server is gone"),
    ],
)
async def test_call_that_fails_is_a_failed_result(
    tmp_path: Path, call: tuple[str, object], why: str
) -> None:
    (result,) = await results_of(tmp_path, call)
    assert not result.success
    assert why in result.output


async def test_calls_over_http_come_to_the_same(tmp_path: Path) -> None:
    expected = {
        "t__add": ({"a": 1, "b": 2}, "3"),
        "t__echo": (NOTHING, "'text' is a required property"),
        "t__fail": (NOTHING, "Error executing tool fail"),
        "t__much": ({"size": 50_000_000}, "[cut after 65536 bytes"),
        "t__picture": (NOTHING, "[image: image/png, 102 bytes, not shown]"),
        "t__die": (NOTHING, "the server is gone"),
    }
    with http_server() as url:
        web = McpServer(url=url, allow=("*",))
        async with open_servers(tmp_path, {"t": web}, max_output_bytes=65536) as servers:
            handler = await Story([""]).handler(servers)
            named = [MCPToolCall(name, arguments) for name, (arguments, _) in expected.items()]
            results = await handler.execute_tools(named)
    for result, (_, came) in zip(results, expected.values(), strict=True):
        assert came in result.output


async def test_call_over_http_that_hangs_fails_at_its_deadline(tmp_path: Path) -> None:
    with http_server() as url:
        async with open_servers(tmp_path, {"t": McpServer(url=url, allow=("*",))}) as servers:
            handler = await Story([""]).handler(servers, call_s=0.5)
            (result,) = await handler.execute_tools([MCPToolCall("t__hang", {})])
    assert result.output == "the tool did not answer within 0.5 s"


async def test_several_calls_and_two_rounds_go_over_http(tmp_path: Path) -> None:
    story = Story([f"Two:\n```\nx\n```\n```json\n{calls(ADD, ADD)}\n```", "All done."])
    with http_server() as url:
        async with open_servers(tmp_path, {"t": McpServer(url=url, allow=("*",))}) as servers:
            handler = await story.handler(servers)
            done = await handler.follow(said(calls(ADD)), story.resume)
    assert done.answer == "All done."
    assert [prompt.count("```text\n3\n```") for prompt in story.prompts] == [1, 2]


async def test_call_that_hangs_fails_at_its_deadline(tmp_path: Path) -> None:
    (result,) = await results_of(tmp_path, ("t__hang", {}), call_s=0.5)
    assert result.output == "the tool did not answer within 0.5 s"


async def test_results_go_back_round_by_round_until_there_are_no_calls(tmp_path: Path) -> None:
    story = Story([calls(("t__echo", {"text": "two"})), "All done."])
    async with open_servers(tmp_path, {"t": stdio(allow=("*",))}) as servers:
        handler = await story.handler(servers)
        done = await handler.follow(said(calls(ADD)), story.resume)
    assert done.answer == "All done."
    assert done.usage == Usage(input_tokens=3, cost_usd=1.5)
    assert ["```text\n3\n```" in story.prompts[0], "```text\ntwo\n```" in story.prompts[1]] == [
        True,
        True,
    ]
    assert [(a.title, a.phase, a.ok) for a in story.actions] == [
        ("t__add", "started", None),
        ("t__add", "completed", True),
        ("t__echo", "started", None),
        ("t__echo", "completed", True),
    ]
    assert story.asked == []


@pytest.mark.parametrize(
    ("last", "shown"),
    [
        (calls(ADD), "stopped after 10 tool rounds"),
        (f"I add.\n\n{calls(ADD)}", "I add."),
    ],
)
async def test_iteration_limit_stops_the_loop_with_a_warning(
    tmp_path: Path, last: str, shown: str
) -> None:
    story = Story([last])
    async with open_servers(tmp_path, {"t": stdio(allow=("*",))}) as servers:
        handler = await story.handler(servers)
        with structlog.testing.capture_logs() as logs:
            done = await handler.follow(said(calls(ADD)), story.resume)
    assert len(story.prompts) == 10
    assert done.answer == shown
    assert [log["log_level"] for log in logs if "iteration_limit" in log["event"]] == ["warning"]


async def test_after_a_round_of_failures_no_more_calls_are_made(tmp_path: Path) -> None:
    path = tmp_path / "count"
    story = Story([calls(("t__count", {"path": str(path)}))])
    async with open_servers(tmp_path, {"t": stdio(allow=("*",))}) as servers:
        handler = await story.handler(servers)
        done = await handler.follow(said(calls(("t__nothing", {}))), story.resume)
    assert len(story.prompts) == 1
    assert done.answer == ALL_FAILED
    assert not path.exists()


async def test_call_outside_allow_is_not_made_when_the_person_denies_it(tmp_path: Path) -> None:
    path = tmp_path / "count"
    story = Story(["Well."], verdict=Answer("deny", reason="not now"))
    async with open_servers(tmp_path, {"t": stdio(allow=("t__add",))}) as servers:
        handler = await story.handler(servers)
        both = calls(ADD, ("t__count", {"path": str(path)}))
        await handler.follow(said(both), story.resume)
    assert story.asked == ["t__count"]
    assert not path.exists()
    assert "the person denied this call: not now" in story.prompts[0]


async def test_engine_without_a_thread_gets_no_tools_called(tmp_path: Path) -> None:
    path = tmp_path / "count"
    story = Story([""])
    async with open_servers(tmp_path, {"t": stdio(allow=("*",))}) as servers:
        handler = await story.handler(servers)
        alone = Completed(ok=True, answer=calls(("t__count", {"path": str(path)})))
        assert (await handler.follow(alone, story.resume)).answer == NO_THREAD
    assert not path.exists()


async def test_calls_of_a_failed_run_are_neither_made_nor_shown(tmp_path: Path) -> None:
    story = Story([""])
    async with open_servers(tmp_path, {"t": stdio()}) as servers:
        handler = await story.handler(servers)
        failed = Completed(ok=False, answer=calls(ADD), error="It broke.")
        assert not (await handler.follow(failed, story.resume)).answer
    assert story.prompts == story.asked == []
