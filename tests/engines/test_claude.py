import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from takopi.core.events import Answer, Ask
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.claude.spec import SPEC, ClaudeSettings
from tests.engines.claude_talk import (
    CWD,
    THREAD,
    make_dialect,
    say,
)
from tests.engines.samples import DATA

COMMON = (
    "-p --output-format stream-json --input-format stream-json --verbose "
    "--permission-prompt-tool stdio"
)
TWO_WAY = sorted((DATA / "claude").glob("ctl_*.jsonl"))


@pytest.mark.parametrize(
    ("keys", "job", "argv"),
    [
        ({}, EngineJob("p", CWD), "--permission-mode default"),
        ({"permission_mode": "accept-edits"}, EngineJob("p", CWD), "--permission-mode acceptEdits"),
        ({"permission_mode": "plan"}, EngineJob("p", CWD), "--permission-mode plan"),
        ({"permission_mode": "bypass"}, EngineJob("p", CWD), "--permission-mode bypassPermissions"),
        (
            {"allowed_tools": ("Read", "Bash(git:*)")},
            EngineJob("p", CWD),
            "--allowedTools Read,Bash(git:*) --permission-mode default",
        ),
        ({"model": "opus"}, EngineJob("p", CWD), "--permission-mode default --model opus"),
        (
            {"model": "opus"},
            EngineJob("p", CWD, model="sonnet"),
            "--permission-mode default --model sonnet",
        ),
        (
            {"extra_args": ("--effort", "low")},
            EngineJob("p", CWD, resume=THREAD),
            f"--permission-mode default --resume={THREAD.value} --effort low",
        ),
    ],
)
def test_the_arguments_say_how_to_run(keys: dict[str, Any], job: EngineJob, argv: str) -> None:
    assert SPEC.argv(ClaudeSettings(**keys), job) == f"{COMMON} {argv}".split()


def test_both_system_prompts_are_appended() -> None:
    argv = SPEC.argv(
        ClaudeSettings(append_system_prompt="be brief"), EngineJob("p", CWD, "use git")
    )
    assert argv[-2:] == ["--append-system-prompt", "be brief\n\nuse git"]


def test_an_id_that_looks_like_an_option_is_not_one() -> None:
    token = ResumeToken(SPEC.id, "--dangerously-skip-permissions")
    argv = SPEC.argv(ClaudeSettings(), EngineJob("p", CWD, resume=token))
    assert argv[-1] == "--resume=--dangerously-skip-permissions"


def test_the_prompt_goes_to_stdin_and_not_into_the_arguments() -> None:
    job = EngineJob("canary", CWD, system="be brief", resume=THREAD)
    assert "canary" not in " ".join(SPEC.argv(ClaudeSettings(), job))
    assert b"canary" in SPEC.dialect(ClaudeSettings(), job).opening()


def test_the_resume_line_is_found_again() -> None:
    line = SPEC.resume_line(THREAD)
    assert line == f"claude --resume {THREAD.value}"
    assert SPEC.parse_resume(f"text\n`{line}`\n") == THREAD


@pytest.mark.parametrize("keys", [{"permission_mode": "yolo"}, {"alowed_tools": []}])
def test_a_wrong_setting_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(keys, ClaudeSettings)


def test_the_api_key_is_inherited_only_when_it_is_to_pay() -> None:
    env = {"ANTHROPIC_API_KEY": "inherited", "PATH": "/bin"}
    assert "ANTHROPIC_API_KEY" not in SPEC.environ(ClaudeSettings(), env)
    assert SPEC.environ(ClaudeSettings(use_api_billing=True), env)["ANTHROPIC_API_KEY"]


def test_what_the_settings_put_into_the_environment_stays() -> None:
    own = {"ANTHROPIC_API_KEY": "own", "CLAUDE_EFFORT": "high"}
    assert own.items() <= SPEC.environ(ClaudeSettings(env=own), own).items()


def test_claude_is_told_to_report_its_state() -> None:
    name = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"
    assert SPEC.environ(ClaudeSettings(), {name: "0"})[name] == "1"
    assert SPEC.environ(ClaudeSettings(env={name: "0"}), {name: "0"})[name] == "0"


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def without_id(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in {"_dir", "_t", "request_id"}}


def test_the_opening_is_as_it_was_recorded() -> None:
    recorded = read_lines(DATA / "claude/ctl_allow.jsonl")[:2]
    opening = make_dialect(prompt="WRITE a file").opening().splitlines()
    assert [without_id(json.loads(line)) for line in opening] == [*map(without_id, recorded)]


def test_a_resumed_thread_gets_the_system_prompt_of_this_run() -> None:
    for dialect in (make_dialect(system="new"), make_dialect(append_system_prompt="new")):
        hello = json.loads(dialect.opening().splitlines()[0])
        assert hello["request"]["systemPromptSnapshot"] is False


@pytest.mark.parametrize("path", TWO_WAY, ids=lambda path: path.stem)
def test_answers_are_as_they_were_recorded(path: Path) -> None:
    dialect = make_dialect()
    open_asks: dict[str, Ask] = {}
    for recorded in read_lines(path):
        direction = recorded.pop("_dir")
        recorded.pop("_t", None)
        if direction == "<stdout":
            for said in say(dialect, recorded):
                if isinstance(said, Ask):
                    open_asks[said.id] = said
        elif recorded.get("type") == "control_response":
            ask = open_asks.pop(recorded["response"]["request_id"])
            answer = read_answer(ask, recorded["response"]["response"])
            assert json.loads(dialect.answer(ask, answer)) == recorded


def read_answer(ask: Ask, response: dict[str, Any]) -> Answer:
    if response["behavior"] == "deny":
        return Answer("deny", response["message"])
    if ask.kind == "question":
        answers = response["updatedInput"]["answers"]
        return Answer("allow", replies=tuple((answers[one.text],) for one in ask.questions))
    return Answer("allow_thread" if "updatedPermissions" in response else "allow")
