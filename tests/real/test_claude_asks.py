from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.model.server import serve_model
from tests.real.clis import RUN_S, Cli
from tests.real.scripts import (
    ASK,
    PLAN,
    PLAN_UNWRITTEN,
    QUESTION,
    Case,
    script_of,
    write,
    write_twice,
)

pytestmark = pytest.mark.real

MakeCli = Callable[[str, str], Cli]
Decide = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Talk:
    """What claude asked of the person, and the answer it came to."""

    asks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    answers: list[str] = field(default_factory=list[str])


async def _talk(make_cli: MakeCli, case: Case, *options: str, decide: Decide) -> Talk:
    """Run `case` two ways, as a person who decides every ask at once."""
    talk = Talk()
    options = (
        *("--input-format", "stream-json", "--permission-prompt-tool", "stdio"),
        *options,
    )
    with trio.fail_after(RUN_S):
        async with serve_model(script_of(case)) as model, trio.open_nursery() as nursery:
            cli = make_cli("claude", model.base_url)
            run = partial(
                trio.run_process,
                cli.argv(*options),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=cli.cwd,
                env=cli.env,
            )
            process: trio.Process = await nursery.start(run)
            await _converse(process, case.prompt, talk=talk, decide=decide)
    return talk


async def _converse(process: trio.Process, prompt: str, *, talk: Talk, decide: Decide) -> None:
    assert process.stdin is not None
    assert process.stdout is not None

    async def tell(line: dict[str, Any]) -> None:
        assert process.stdin is not None
        await process.stdin.send_all(json.dumps(line).encode() + b"\n")

    await tell({
        "type": "control_request",
        "request_id": "hello",
        "request": {"subtype": "initialize", "hooks": None},
    })
    await tell({"type": "user", "message": {"role": "user", "content": prompt}})
    unread = b""
    async for some in process.stdout:
        *lines, unread = (unread + some).split(b"\n")
        for line in map(json.loads, lines):
            if line["type"] == "control_request":
                talk.asks.append(line["request"])
                reply = {
                    "subtype": "success",
                    "request_id": line["request_id"],
                    "response": decide(line["request"]),
                }
                await tell({"type": "control_response", "response": reply})
            elif line["type"] == "result":
                talk.answers.append(line["result"])
                await process.stdin.aclose()


def _allow(ask: dict[str, Any]) -> dict[str, Any]:
    return {"behavior": "allow", "updatedInput": ask["input"]}


def _deny(_ask: dict[str, Any]) -> dict[str, Any]:
    return {"behavior": "deny", "message": "a person said no"}


async def test_an_allowed_write_happens(make_cli: MakeCli, tmp_path: Path) -> None:
    path = tmp_path / "project" / "out.txt"
    talk = await _talk(make_cli, write("claude", path), decide=_allow)
    assert [ask["tool_name"] for ask in talk.asks] == ["Write"]
    assert path.read_text() == "eight arms"


async def test_a_denied_write_does_not_happen(make_cli: MakeCli, tmp_path: Path) -> None:
    path = tmp_path / "project" / "out.txt"
    talk = await _talk(make_cli, write("claude", path), decide=_deny)
    assert talk.answers == ["The tool has answered."]
    assert not path.exists()


async def test_each_write_is_asked_for_once_allowed_alone(
    make_cli: MakeCli, tmp_path: Path
) -> None:
    first, second = tmp_path / "project" / "one.txt", tmp_path / "project" / "two.txt"
    talk = await _talk(make_cli, write_twice("claude", first, second), decide=_allow)
    assert len(talk.asks) == 2


async def test_allowed_for_the_thread_the_second_write_is_not_asked_for(
    make_cli: MakeCli, tmp_path: Path
) -> None:
    def allow_for_thread(ask: dict[str, Any]) -> dict[str, Any]:
        return {**_allow(ask), "updatedPermissions": ask["permission_suggestions"]}

    first, second = tmp_path / "project" / "one.txt", tmp_path / "project" / "two.txt"
    talk = await _talk(make_cli, write_twice("claude", first, second), decide=allow_for_thread)
    assert len(talk.asks) == 1
    assert (first.read_text(), second.read_text()) == ("eight arms", "three hearts")


async def test_the_answer_to_a_question_reaches_the_model(make_cli: MakeCli) -> None:
    def choose_baltic(ask: dict[str, Any]) -> dict[str, Any]:
        updated = {**ask["input"], "answers": {QUESTION: "Baltic"}}
        return {"behavior": "allow", "updatedInput": updated}

    talk = await _talk(make_cli, ASK, decide=choose_baltic)
    assert [ask["tool_name"] for ask in talk.asks] == ["AskUserQuestion"]
    assert talk.answers == [ASK.answer]


@pytest.mark.parametrize(
    ("case", "shown"),
    [(PLAN, "1. Swim.\n2. Rest.\n"), (PLAN_UNWRITTEN, None)],
    ids=["written", "unwritten"],
)
async def test_an_approved_plan_lets_the_model_begin(
    make_cli: MakeCli, case: Case, shown: str | None
) -> None:
    talk = await _talk(make_cli, case, "--permission-mode", "plan", decide=_allow)
    assert [ask["tool_name"] for ask in talk.asks] == ["ExitPlanMode"]
    assert talk.asks[0]["input"].get("plan") == shown
    assert talk.answers == [PLAN.answer]


async def test_a_refused_plan_is_thought_over(make_cli: MakeCli) -> None:
    talk = await _talk(make_cli, PLAN, "--permission-mode", "plan", decide=_deny)
    assert talk.answers == ["I will think again."]
