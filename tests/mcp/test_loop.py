from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path

import pytest
import structlog.testing

from takopi.core.events import Action, Answer, Completed, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.tools import MCPToolCall, MCPToolResult
from takopi.mcp.calls import MAX_CALLS
from takopi.mcp.loop import ALL_FAILED, NO_THREAD, CLIMCPResponseHandler
from takopi.mcp.servers import McpServers
from takopi.runs.tooling import results_prompt
from tests.mcp.rig import WAYS, Way, open_servers, server_by, stdio

THREAD = ResumeToken(EngineId("demo"), "0123")
SPENT = Usage(input_tokens=1, cost_usd=0.5)


def calls(*named: tuple[str, object]) -> str:
    return json.dumps({"tool_calls": [{"name": n, "arguments": a} for n, a in named]})


ADD = ("t__add", {"a": 1, "b": 2})
NOTHING: dict[str, object] = {}
TOO_LONG: dict[Way, str] = {
    "stdio": "the server is gone: its reply has more than 8388608 bytes",
    "http": "the reply has more than 8388608 bytes",
    "events": "exceeded the 8388608 byte limit",
}

# The SDK and httpx2 leave their inner generators to Trio's finaliser when a stream is given up.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
every_way = pytest.mark.parametrize("way", WAYS)


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
    tmp_path: Path, way: Way, *named: tuple[str, object], call_s: float = 60
) -> Sequence[MCPToolResult]:
    with server_by(way) as server:
        async with open_servers(tmp_path, {"t": server}) as servers:
            handler = await Story([""]).handler(servers, call_s=call_s)
            return await handler.execute_tools(list(starmap(MCPToolCall, named)))


@every_way
async def test_detected_tools_are_executed_with_success_and_output(
    tmp_path: Path, way: Way
) -> None:
    echo, long = ("t__echo", {"text": "hi"}), ("t__much", {"size": 70_000})
    named = (ADD, echo, long, ("t__picture", NOTHING))
    added, echoed, much, picture = await results_of(tmp_path, way, *named)
    assert added == MCPToolResult("t__add", success=True, output="3")
    assert echoed == MCPToolResult("t__echo", success=True, output="hi")
    assert much.success
    assert much.output.startswith("x" * 65536 + "\n[cut after 65536 bytes")
    shown = "[image: image/png, 102 bytes, not shown]"
    assert picture == MCPToolResult("t__picture", success=True, output=shown)


@every_way
async def test_call_that_fails_is_a_failed_result_and_the_next_is_made(
    tmp_path: Path, way: Way
) -> None:
    failing: list[tuple[tuple[str, object], str]] = [
        (("t__ad", NOTHING), "there is no tool of this name"),
        (("T__add", {"a": 1, "b": 2}), "there is no tool of this name"),
        (("t__add", {"a": 1}), "'b' is a required property"),
        (("t__add", [1, 2]), "must be a JSON object"),
        (("t__fail", NOTHING), "Error executing tool fail"),
        (("t__much", {"size": 50_000_000}), TOO_LONG[way]),
    ]
    named = [call for call, _ in failing]
    *failed, last = await results_of(tmp_path, way, *named, ADD)
    for result, (call, why) in zip(failed, failing, strict=True):
        assert (result.name, result.success) == (call[0], False)
        assert why in result.output
    assert last.output == "3"


@every_way
async def test_server_that_is_killed_in_a_call_fails_it(tmp_path: Path, way: Way) -> None:
    (result,) = await results_of(tmp_path, way, ("t__die", NOTHING))
    assert not result.success
    assert "the server is gone" in result.output


@every_way
async def test_call_that_hangs_fails_at_its_deadline(tmp_path: Path, way: Way) -> None:
    (result,) = await results_of(tmp_path, way, ("t__hang", NOTHING), call_s=0.5)
    assert result.output == "the tool did not answer within 0.5 s"


async def test_too_many_calls_of_one_answer_are_not_made(tmp_path: Path) -> None:
    path = tmp_path / "count"
    count = ("t__count", {"path": str(path)})
    *made, last = await results_of(tmp_path, "stdio", *[count] * (MAX_CALLS + 1))
    assert all(result.success for result in made)
    assert (last.success, last.output) == (
        False,
        "only 20 calls are made for one answer, 1 are left out",
    )
    assert len(path.read_text(encoding="utf-8").splitlines()) == MAX_CALLS


async def test_however_many_calls_are_left_out_they_have_one_result_and_one_action(
    tmp_path: Path,
) -> None:
    story = Story(["All done."])
    async with open_servers(tmp_path, {"t": stdio()}) as servers:
        handler = await story.handler(servers)
        flood = '{"tool_calls": [' + ",".join(["{}"] * 30_000) + "]}"
        await handler.follow(said(flood), story.resume)
    assert len(story.actions) == 2 * MAX_CALLS + 1
    assert story.actions[-1].title == "29980 more calls"
    assert len(story.prompts[0]) < 10_000


@every_way
async def test_results_go_back_round_by_round_until_there_are_no_calls(
    tmp_path: Path, way: Way
) -> None:
    two = calls(("t__echo", {"text": "two"}), ADD)
    story = Story([f"First:\n```sh\nls\n```\nthen:\n```json\n{two}\n```", "All done."])
    with server_by(way) as server:
        async with open_servers(tmp_path, {"t": server}) as servers:
            handler = await story.handler(servers)
            done = await handler.follow(said(calls(ADD)), story.resume)
    assert done.answer == "All done."
    assert done.usage == Usage(input_tokens=3, cost_usd=1.5)
    assert [re.findall(r"```text\n(.*)\n```", prompt) for prompt in story.prompts] == [
        ["3"],
        ["two", "3"],
    ]
    assert [(a.title, a.phase, a.ok) for a in story.actions] == [
        ("t__add", "started", None),
        ("t__add", "completed", True),
        ("t__echo", "started", None),
        ("t__echo", "completed", True),
        ("t__add", "started", None),
        ("t__add", "completed", True),
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
