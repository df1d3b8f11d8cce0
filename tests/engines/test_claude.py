import json
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.core.events import Action, Answer, Ask, Completed, Question, Started
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.claude.asks import PREVIEW_CHARS
from takopi.engines.claude.spec import SPEC, ClaudeSettings
from takopi.engines.claude.translate import ClaudeDialect
from takopi.engines.spec import Dialect, Finished, Reply, Said, Withdrawn
from takopi.engines.tools import MAX_OPEN_CALLS
from takopi.engines.wording import DETAIL_CHARS, TITLE_CHARS, visible
from tests.engines.samples import DATA, load_sample, sample_paths

CWD = Path("/home/user/project")
THREAD = ResumeToken(EngineId("claude"), "ccc6bef8-5a9f-400c-b9ce-363707802258")
COMMON = (
    "-p --output-format stream-json --input-format stream-json --verbose "
    "--permission-prompt-tool stdio"
)
INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "opus"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "done"}
SAMPLE_LINES = [line for path in sample_paths("claude") for line in load_sample(path).lines]
TWO_WAY = sorted((DATA / "claude").glob("ctl_*.jsonl"))


def make_dialect(*, prompt: str = "do it", system: str | None = None, **keys: Any) -> ClaudeDialect:
    return ClaudeDialect(ClaudeSettings(**keys), EngineJob(prompt, CWD, system=system))


def say(dialect: Dialect, *lines: dict[str, Any]) -> list[Said]:
    return [said for line in lines for said in dialect.read(json.dumps(line).encode())]


def assistant(*blocks: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    message = {"role": "assistant", "content": [*blocks]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_use(name: str, call_id: str = "t-1", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(
    content: Any = "ok", call_id: str = "t-1", *, parent: str | None = None, error: bool = False
) -> dict[str, Any]:
    block = {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": content,
        "is_error": error,
    }
    message = {"role": "user", "content": [block]}
    return {"type": "user", "message": message, "parent_tool_use_id": parent}


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **fields}


def can_use_tool(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": name, "input": arguments, **fields}
    return {"type": "control_request", "request_id": "r-1", "request": request}


def show_call(name: str, **arguments: Any) -> Action:
    (action,) = say(make_dialect(), assistant(tool_use(name, **arguments)))
    assert isinstance(action, Action)
    return action


def show_outcome(line: dict[str, Any], name: str, **arguments: Any) -> Action:
    _, action = say(make_dialect(), assistant(tool_use(name, **arguments)), line)
    assert isinstance(action, Action)
    return action


def ask_for(name: str, arguments: Any, **fields: Any) -> Ask:
    (ask,) = say(make_dialect(), can_use_tool(name, arguments, **fields))
    assert isinstance(ask, Ask)
    return ask


def decide(answer: Answer, name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    """What claude is told when its request gets this answer."""
    dialect = make_dialect()
    (ask,) = say(dialect, can_use_tool(name, arguments, **fields))
    assert isinstance(ask, Ask)
    told = json.loads(dialect.answer(ask, answer))
    assert told["response"]["request_id"] == "r-1"
    return told["response"]["response"]


def end(*lines: dict[str, Any], code: int = 1, stderr: str = "", **keys: Any) -> Completed:
    dialect = make_dialect(**keys)
    say(dialect, *lines)
    return dialect.end(code, stderr)


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


def test_the_thread_is_told_once() -> None:
    said = say(make_dialect(), INIT, RESULT, INIT)
    assert said[0] == Started(ResumeToken(SPEC.id, "s-1"), "opus")
    assert not any(isinstance(one, Started) for one in said[1:])


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "title"),
    [
        ("Bash", {"command": "ls\n  -l"}, "command", "ls -l"),
        ("Edit", {"file_path": "/home/user/project/a/b.py"}, "file_change", "a/b.py"),
        ("Write", {"file_path": "/etc/hosts"}, "file_change", "/etc/hosts"),
        ("NotebookEdit", {"notebook_path": "n.ipynb"}, "file_change", "n.ipynb"),
        ("Read", {"file_path": "/home/user/project/a.py"}, "tool", "Read a.py"),
        ("Grep", {"pattern": "x+", "path": "/home/user/project/src"}, "tool", "Grep x+ in src"),
        ("Glob", {"pattern": "*.py"}, "tool", "Glob *.py"),
        ("WebSearch", {"query": "octopus"}, "web_search", "octopus"),
        ("WebFetch", {"url": "http://a/", "prompt": "?"}, "web_search", "http://a/"),
        ("Task", {"description": "look", "prompt": "long"}, "subagent", "look"),
        ("Agent", {"description": "look", "prompt": "long"}, "subagent", "look"),
        ("mcp__git__log", {"path": "/home/user/project"}, "tool", "git: log ."),
        ("mcp__odd", {}, "tool", "mcp__odd"),
        ("ToolSearch", {"query": "select"}, "tool", "ToolSearch select"),
        (
            "TodoWrite",
            {"todos": [{"content": "swim", "status": "completed"}]},
            "note",
            "Plan: 1 of 1 done",
        ),
        ("TodoWrite", {"todos": "none"}, "tool", "TodoWrite"),
        ("Bash", {"command": 5}, "command", "Bash"),
        ("", {}, "tool", ""),
    ],
)
def test_a_call_says_what_it_does(
    name: str, arguments: dict[str, Any], kind: str, title: str
) -> None:
    action = show_call(name, **arguments)
    assert (action.kind, action.title, action.phase) == (kind, title, "started")


def test_titles_and_details_are_short_and_titles_have_one_line() -> None:
    long = "many words\n" * 10_000
    action = show_outcome(tool_result(long), "Bash", command=long)
    assert len(action.title) <= TITLE_CHARS
    assert "\n" not in action.title
    assert 0 < len(action.detail) <= DETAIL_CHARS


def test_a_command_ends_with_the_end_of_its_output() -> None:
    action = show_outcome(tool_result("first\n" * 500 + "last"), "Bash", command="make")
    assert (action.ok, action.phase) == (True, "completed")
    assert action.detail.endswith("last")


def test_what_was_read_is_not_repeated() -> None:
    assert show_outcome(tool_result("whole file"), "Read", file_path="a") == Action(
        "t-1", "tool", "Read a", "completed", ok=True
    )


def test_a_failure_says_why() -> None:
    line = tool_result("<tool_use_error>no such file</tool_use_error>", error=True)
    action = show_outcome(line, "Read", file_path="a")
    assert (action.ok, action.detail) == (False, "no such file")


def test_a_result_in_parts_is_read_as_text() -> None:
    parts: list[dict[str, Any]] = [text("one"), {"type": "image", "source": {}}, text("two")]
    assert show_outcome(tool_result(parts), "mcp__a__b").detail == "one two"


def test_a_remark_is_shown_when_something_follows_it_and_an_answer_is_not() -> None:
    dialect = make_dialect()
    assert say(dialect, assistant(text("I look."))) == []
    note, _ = say(dialect, assistant(tool_use("Bash", command="ls")))
    assert note == Action("note-1", "note", "I look.")
    said = say(dialect, tool_result(), assistant(text("Found.")), {**RESULT, "result": None})
    assert [type(one) for one in said] == [Action, Finished]
    assert dialect.end(0, "").answer == "Found."


def test_thoughts_fragments_and_echoes_say_nothing() -> None:
    lines = [
        assistant({"type": "thinking", "thinking": "hm"}),
        {"type": "stream_event", "event": {"type": "message_stop"}},
        {"type": "user", "message": {"role": "user", "content": "do it"}},
        {"type": "user", "message": {"role": "user", "content": [text("[interrupted]")]}},
        {"type": "keep_alive"},
        {"type": "control_response", "response": {"subtype": "success"}},
        system("status", status=None),
    ]
    assert say(make_dialect(), *lines) == []


@pytest.mark.parametrize(
    "line",
    [
        {"type": "octopus", "message": 5},
        system("octopus", message={"is": "no text"}, attempt="first"),
        {"subtype": 5, "message": {}, "type": "system"},
        {"kind": 1, "type": "assistant"},
        {"type": "result"},
    ],
)
def test_the_unknown_and_the_empty_do_no_harm(line: dict[str, Any]) -> None:
    assert say(make_dialect(), line) in ([], [Finished()])


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Hello",
        b"[]",
        b"{}",
        b'{"type": "assistant"',
        b'{"type": "assistant", "message": 5}',
        b'{"type": "system", "subtype": "init", "session_id": 5}',
        b'{"type": "user", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type": "\xff"}',
        b'{"type": "user", "x": "\\ud83d", "y": NaN}',
        b'{"type": "user", "x": "\\ud83d"',
    ],
)
def test_a_line_of_another_language_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        make_dialect().read(line)


def test_half_a_character_does_not_cost_the_answer() -> None:
    dialect = make_dialect()
    dialect.read(b'{"type": "result", "is_error": false, "result": "eight \\ud83d arms"}')
    assert dialect.end(0, "").answer == "eight ? arms"


def test_a_subagent_shows_in_one_line_what_it_does_now() -> None:
    said = say(
        make_dialect(),
        assistant(tool_use("Agent", description="look")),
        assistant(text("sub text"), tool_use("Bash", "t-2", command="ls"), parent="t-1"),
        tool_result("files", "t-2", parent="t-1"),
        tool_result("report"),
    )
    assert said == [
        Action("t-1", "subagent", "look", "started"),
        Action("t-1", "subagent", "look", "updated", detail="ls"),
        Action("t-1", "subagent", "look", "completed", ok=True, detail="report"),
    ]


def test_what_a_subagent_says_is_not_the_answer() -> None:
    dialect = make_dialect()
    say(dialect, assistant(text("mine")), assistant(text("its"), parent="t-1"))
    assert dialect.end(1, "").answer == "mine"


def test_what_the_cli_says_of_a_failed_call_is_neither_remark_nor_answer() -> None:
    dialect = make_dialect()
    say(dialect, {**assistant(text("API Error: 500")), "error": "server_error"})
    assert len(say(dialect, assistant(tool_use("Bash", command="ls")))) == 1
    assert not dialect.end(1, "").answer


def test_a_subagent_in_the_background_ends_when_it_ends_and_not_when_it_is_launched() -> None:
    dialect = make_dialect()
    launched = say(
        dialect,
        assistant(tool_use("Agent", description="look")),
        system("task_started", tool_use_id="t-1", is_backgrounded=True),
        tool_result("launched"),
        RESULT,
    )
    assert [one for one in launched if isinstance(one, Action)] == [
        Action("t-1", "subagent", "look", "started")
    ]
    (ended,) = say(dialect, system("task_notification", tool_use_id="t-1", status="failed"))
    assert ended == Action("t-1", "subagent", "look", "completed", ok=False)


def test_a_shell_in_the_background_is_done_when_it_is_launched() -> None:
    said = say(
        make_dialect(),
        assistant(tool_use("Bash", command="serve")),
        system("task_started", tool_use_id="t-1", is_backgrounded=True),
        tool_result("running"),
        system("task_notification", tool_use_id="t-1", status="completed"),
    )
    assert said[-1] == Action("t-1", "command", "serve", "completed", ok=True, detail="running")
    assert len(said) == 2


def test_the_last_word_is_the_result_where_the_state_is_not_told() -> None:
    assert say(make_dialect(), RESULT, RESULT) == [Finished()]


def test_the_last_word_is_idleness_where_the_state_is_told() -> None:
    dialect = make_dialect()
    assert say(dialect, system("session_state_changed", state="running"), RESULT) == []
    assert say(dialect, {**RESULT, "result": "later"}) == []
    assert say(dialect, system("session_state_changed", state="idle")) == [Finished()]
    assert dialect.end(0, "").answer == "later"


def test_idleness_before_the_first_result_ends_nothing() -> None:
    dialect = make_dialect()
    assert say(dialect, system("session_state_changed", state="idle")) == []
    assert say(dialect, RESULT) == [Finished()]


def test_retries_are_one_warning_that_ends_with_the_next_answer() -> None:
    retry = {"error_status": 529, "error": "overloaded", "max_retries": 10}
    said = say(
        make_dialect(),
        system("api_retry", attempt=1, retry_delay_ms=600, **retry),
        system("api_retry", attempt=2, retry_delay_ms=2400, **retry),
        assistant(text("hello")),
    )
    title = "The API is overloaded (529): retry 2 of 10 in 2 s"
    assert isinstance(said[0], Action)
    assert said[0].phase == "started"
    assert said[1:] == [
        Action("retry-1", "warning", title, "updated"),
        Action("retry-1", "warning", title, "completed", ok=True),
    ]


def test_a_silent_api_is_called_silent() -> None:
    (action,) = say(
        make_dialect(), system("api_retry", attempt=1, error_status=None, error="unknown")
    )
    assert isinstance(action, Action)
    assert action.title == "The API does not answer: retry 1 of ? in 1 s"


@pytest.mark.parametrize(
    ("info", "title"),
    [
        ({"status": "allowed", "resetsAt": 0}, None),
        (
            {"status": "allowed_warning", "rateLimitType": "five_hour", "utilization": 0.92},
            "Close to the 5-hour limit: 92% used",
        ),
        (
            {"status": "rejected", "rateLimitType": "seven_day", "resetsAt": 1794985763},
            "The weekly limit is reached, resets 18 Nov 07:09 UTC",
        ),
        ({"status": "rejected", "resetsAt": 1e300}, "The usage limit is reached"),
    ],
)
def test_a_limit_is_shown_with_its_end(info: dict[str, Any], title: str | None) -> None:
    said = say(make_dialect(), {"type": "rate_limit_event", "rate_limit_info": info})
    assert [one.title for one in said if isinstance(one, Action)] == ([title] if title else [])


def test_news_that_matter_are_shown() -> None:
    said = say(
        make_dialect(),
        system("informational", level="info", content="unimportant"),
        system("informational", level="warning", content="A hook failed"),
        system("compact_boundary"),
    )
    assert said == [
        Action("note-1", "warning", "A hook failed"),
        Action("note-2", "note", "The conversation was compacted"),
    ]


SUGGESTION = {"type": "addRules", "rules": [{"toolName": "Bash"}], "destination": "localSettings"}


def test_an_approval_shows_the_command() -> None:
    ask = ask_for("Bash", {"command": "rm -r x\nls", "description": "Tidy up"})
    assert (ask.kind, ask.tool, ask.target, ask.preview) == (
        "approval",
        "Bash",
        "rm -r x ls",
        "rm -r x\nls",
    )
    assert not ask.for_thread


@pytest.mark.parametrize(
    ("name", "arguments", "preview"),
    [
        ("Edit", {"file_path": "a", "old_string": "1\n2", "new_string": "3"}, "-1\n-2\n+3"),
        ("Write", {"file_path": "a", "content": "1\n2\n"}, "+1\n+2"),
        ("NotebookEdit", {"notebook_path": "a", "new_source": "1"}, "+1"),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "1", "new_string": "2"}, 5]},
            "-1\n+2",
        ),
        ("mcp__a__b", {"deep": {"x": 1}}, '{\n  "deep": {\n    "x": 1\n  }\n}'),
        ("mcp__a__b", {}, ""),
        ("mcp__a__b", None, ""),
    ],
)
def test_an_approval_shows_a_small_diff(name: str, arguments: Any, preview: str) -> None:
    assert ask_for(name, arguments).preview == preview


def test_a_long_preview_keeps_both_ends_and_says_what_is_missing() -> None:
    command = "start; " + "x" * 100_000 + "; rm -r /"
    preview = ask_for("Bash", {"command": command}).preview
    assert len(preview) < PREVIEW_CHARS + 100
    assert preview.startswith("start; ")
    assert preview.endswith("; rm -r /")
    assert f"{len(command) - PREVIEW_CHARS} characters left out" in preview


@pytest.mark.parametrize("hidden", ["\r", "\x1b", "\u202e", "\u200b", "\u2066", "\U000e0041"])
def test_nothing_hides_in_an_approval(hidden: str) -> None:
    ask = ask_for("Bash", {"command": f"ls {hidden} x"}, decision_reason=f"odd {hidden}")
    assert hidden not in ask.preview + ask.target + ask.tool
    assert visible(hidden) in ask.preview


def test_why_claude_asks_is_shown() -> None:
    ask = ask_for("Bash", {"command": "ls"}, decision_reason="outside the project")
    assert ask.preview == "ls\n\noutside the project"


def test_a_permission_can_be_for_the_thread_where_claude_offers_one() -> None:
    asked = ("Bash", {"command": "ls"})
    assert ask_for(*asked, permission_suggestions=[SUGGESTION]).for_thread
    assert not ask_for(*asked, permission_suggestions=[]).for_thread
    assert not ask_for(
        *asked, permission_suggestions=[SUGGESTION], suppress_always_allow_rule=True
    ).for_thread


def test_a_permission_for_the_thread_is_not_written_into_the_project() -> None:
    told = decide(
        Answer("allow_thread"), "Bash", {"command": "ls"}, permission_suggestions=[SUGGESTION]
    )
    assert told["updatedPermissions"] == [{**SUGGESTION, "destination": "session"}]


def test_a_permission_once_gives_no_rule() -> None:
    told = decide(Answer("allow"), "Bash", {"command": "ls"}, permission_suggestions=[SUGGESTION])
    assert told == {"behavior": "allow", "updatedInput": {"command": "ls"}}


def test_a_proposed_plan_is_an_approval_with_the_plan() -> None:
    ask = ask_for("ExitPlanMode", {"plan": "1. Swim", "planFilePath": "/p.md"})
    assert (ask.kind, ask.plan, ask.for_thread) == ("approval", "1. Swim", False)


def test_a_plan_is_taken_from_the_call_where_the_request_has_none() -> None:
    call = assistant(tool_use("ExitPlanMode", plan="1. Swim"))
    *_, ask = say(make_dialect(), call, can_use_tool("ExitPlanMode", {}, tool_use_id="t-1"))
    assert isinstance(ask, Ask)
    assert ask.plan == "1. Swim"


def test_an_absent_plan_is_empty_and_still_a_plan() -> None:
    assert ask_for("ExitPlanMode", {}) == Ask("r-1", "approval", tool="ExitPlanMode", plan="")


@pytest.mark.parametrize(
    ("name", "arguments", "reason", "message"),
    [
        ("Bash", {"command": "ls"}, "too risky", "too risky"),
        ("Bash", {"command": "ls"}, "", "The user denied this."),
        ("ExitPlanMode", {}, "test first", "The user asks for a revised plan: test first"),
        ("ExitPlanMode", {}, "", "The user does not approve this plan yet. Ask what to change."),
        ("AskUserQuestion", {"questions": [{"question": "?"}]}, "", "The user did not answer."),
    ],
)
def test_a_denial_says_why(name: str, arguments: Any, reason: str, message: str) -> None:
    told = decide(Answer("deny", reason), name, arguments)
    assert told == {"behavior": "deny", "message": message}


def test_questions_may_have_choices_several_or_none() -> None:
    one = {"question": "Which?", "header": "W", "options": [{"label": "A", "description": "a"}]}
    ask = ask_for(
        "AskUserQuestion", {"questions": [{**one, "multiSelect": True}, {"question": "Why?"}]}
    )
    assert ask.kind == "question"
    which, why = ask.questions
    assert (which.several, [choice.label for choice in which.choices]) == (True, ["A"])
    assert why == Question("Why?")


def test_replies_are_told_by_question() -> None:
    asked = {"questions": [{"question": "Which?"}, {"question": "Why?"}, {"question": "When?"}]}
    told = decide(Answer("allow", replies=(("A", "B"), ("since",))), "AskUserQuestion", asked)
    assert told["updatedInput"] == {**asked, "answers": {"Which?": "A, B", "Why?": "since"}}


def test_questions_of_another_shape_become_an_approval() -> None:
    ask = ask_for("AskUserQuestion", {"questions": "odd"})
    assert (ask.kind, ask.questions) == ("approval", ())


def test_a_withdrawn_ask_takes_no_answer() -> None:
    dialect = make_dialect()
    (ask,) = say(dialect, can_use_tool("Bash", {"command": "ls"}))
    assert isinstance(ask, Ask)
    cancel = {"type": "control_cancel_request", "request_id": "r-1"}
    assert say(dialect, cancel) == [Withdrawn("r-1")]
    assert dialect.answer(ask, Answer("allow")) == b""
    assert say(dialect, cancel) == []


def test_an_ask_takes_one_answer() -> None:
    dialect = make_dialect()
    (ask,) = say(dialect, can_use_tool("Bash", {"command": "ls"}))
    assert isinstance(ask, Ask)
    assert dialect.answer(ask, Answer("allow"))
    assert dialect.answer(ask, Answer("deny")) == b""


@pytest.mark.parametrize(
    "request_", [{"subtype": "octopus"}, {"subtype": "can_use_tool", "tool_name": 5}, 5, None]
)
def test_claude_never_waits_for_what_takopi_cannot_answer(request_: Any) -> None:
    line = {"type": "control_request", "request_id": "r-1", "request": request_}
    (reply,) = say(make_dialect(), line)
    assert isinstance(reply, Reply)
    assert reply.data.endswith(b"\n")
    told = json.loads(reply.data)["response"]
    assert (told["subtype"], told["request_id"]) == ("error", "r-1")


def test_a_form_of_an_mcp_server_is_declined_and_shown() -> None:
    request = {"subtype": "elicitation", "mcp_server_name": "bank", "message": "PIN?"}
    line = {"type": "control_request", "request_id": "r-1", "request": request}
    reply, warning = say(make_dialect(), line)
    assert isinstance(reply, Reply)
    assert json.loads(reply.data)["response"]["response"] == {"action": "decline"}
    assert isinstance(warning, Action)
    assert "bank" in warning.title


def test_each_interrupt_is_a_request_of_its_own() -> None:
    dialect = make_dialect()
    first, second = json.loads(dialect.interrupt()), json.loads(dialect.interrupt())
    assert first["request"] == second["request"] == {"subtype": "interrupt"}
    assert first["request_id"] != second["request_id"]


def failed(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "error_during_execution", "is_error": True, **fields}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (failed(subtype="success", result="API Error: 400 no"), "API Error: 400 no"),
        (failed(errors=["one", "[ede_diagnostic] x", "two"]), "one; two"),
        (failed(terminal_reason="aborted_tools", errors=["x"]), "claude was interrupted."),
        (
            failed(subtype="error_max_turns", num_turns=9),
            "claude stopped at its limit of turns after 9 turns. Say “continue” to go on.",
        ),
        (
            failed(subtype="error_max_budget_usd"),
            "claude stopped at its limit of cost, --max-budget-usd. Raise it in extra_args.",
        ),
        (
            failed(result="Not logged in · Please run /login"),
            (
                "Not logged in. Log in with `claude auth login`. "
                "To pay by ANTHROPIC_API_KEY instead, set use_api_billing."
            ),
        ),
        (failed(), "claude exited with code 1 without a result: it broke"),
    ],
)
def test_a_failed_turn_says_why(line: dict[str, Any], error: str) -> None:
    completed = end(line, stderr="it broke\n")
    assert (completed.ok, completed.error) == (False, error)


def test_who_pays_by_key_is_not_told_to() -> None:
    completed = end(failed(result="Invalid API key"), use_api_billing=True)
    assert completed.error == "Invalid API key. Log in with `claude auth login`."


@pytest.mark.parametrize(
    ("code", "stderr", "error"),
    [
        (-9, "", "claude was ended by SIGKILL without a result."),
        (
            1,
            "--dangerously-skip-permissions cannot be used with root/sudo privileges",
            (
                'claude refuses permission_mode "bypass" as root. '
                "Run takopi as another user, or choose another permission_mode."
            ),
        ),
        (
            1,
            "error: unknown option '--octopus'\n",
            (
                "claude does not take its arguments: unknown option '--octopus'. "
                "Check extra_args and model, or update claude."
            ),
        ),
    ],
)
def test_an_end_without_a_result_says_how(code: int, stderr: str, error: str) -> None:
    completed = end(INIT, code=code, stderr=stderr)
    assert (completed.ok, completed.error) == (False, error)
    assert completed.resume == ResumeToken(SPEC.id, "s-1")


@pytest.mark.parametrize(
    "sign", ["No conversation found with session ID: 1", '"x" does not match any session title']
)
def test_a_lost_thread_is_not_offered_again(sign: str) -> None:
    for dialect_lines, stderr in (([failed(errors=[sign])], ""), ([], sign)):
        dialect = ClaudeDialect(ClaudeSettings(), EngineJob("p", CWD, resume=THREAD))
        say(dialect, *dialect_lines)
        completed = dialect.end(1, stderr)
        assert (completed.ok, completed.thread_lost, completed.resume) == (False, True, None)


def test_an_answer_that_quotes_a_lost_thread_has_lost_nothing() -> None:
    completed = end({**RESULT, "result": "No conversation found"}, code=0)
    assert (completed.ok, completed.thread_lost) == (True, False)


def test_a_thread_that_did_not_come_up_can_still_be_resumed() -> None:
    dialect = ClaudeDialect(ClaudeSettings(), EngineJob("p", CWD, resume=THREAD))
    assert dialect.end(1, "no network").resume == THREAD


def test_the_result_decides_and_not_the_exit_code() -> None:
    assert end(INIT, RESULT, code=-15).ok


def test_what_a_resumed_thread_spent_before_is_not_counted() -> None:
    used = {"inputTokens": 10, "outputTokens": 3, "cacheReadInputTokens": 5, "costUSD": 0.25}
    other = {"inputTokens": 1, "outputTokens": 1, "cacheCreationInputTokens": 2, "costUSD": 0.5}
    line = {**RESULT, "total_cost_usd": 9, "model_usage_since_last_result": {"a": used, "b": other}}
    usage = end(line, line).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (36, 8, 10)
    assert usage.cost_usd == pytest.approx(1.5)


def test_an_older_claude_tells_its_usage_by_turn() -> None:
    used = {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 5}
    usage = end({**RESULT, "total_cost_usd": 0.5, "usage": used}).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (15, 3, 5)
    assert usage.cost_usd == pytest.approx(0.5)


def test_memory_does_not_grow_with_calls_that_are_answered() -> None:
    dialect = make_dialect()

    def work(start: int, stop: int) -> int:
        for number in range(start, stop):
            call_id = f"t-{number}"
            say(
                dialect,
                assistant(text("x" * 200), tool_use("Bash", call_id, command="y" * 200)),
                can_use_tool("Bash", {"command": "y" * 200}, tool_use_id=call_id),
                {"type": "control_cancel_request", "request_id": "r-1"},
                tool_result("z" * 200, call_id),
            )
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = work(0, 200)
        assert work(200, 3000) - before < 20_000
    finally:
        tracemalloc.stop()


def test_calls_that_are_never_answered_are_forgotten() -> None:
    dialect = make_dialect()
    for number in range(MAX_OPEN_CALLS + 1):
        say(dialect, assistant(tool_use("Bash", f"t-{number}", command="ls")))
    assert say(dialect, tool_result(call_id="t-0")) == []
    assert len(say(dialect, tool_result(call_id="t-1"))) == 1


def test_calls_of_a_turn_are_forgotten_with_it() -> None:
    dialect = make_dialect()
    say(dialect, assistant(tool_use("Bash", command="ls")), RESULT)
    assert say(dialect, tool_result()) == []


def read_or_refuse(line: bytes) -> None:
    dialect = make_dialect()
    try:
        dialect.read(line)
    except msgspec.MsgspecError:
        return
    dialect.end(0, "")


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_refused_in_one_way(line: bytes) -> None:
    read_or_refuse(line)


@settings(deadline=None)
@given(st.sampled_from(SAMPLE_LINES), st.data())
def test_a_damaged_line_is_read_or_refused(line: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line)))
    stop = data.draw(st.integers(start, min(len(line), start + 40)))
    read_or_refuse(line[:start] + data.draw(st.binary(max_size=20)) + line[stop:])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = sorted({key for line in SAMPLE_LINES for key in json.loads(line)})


@settings(deadline=None)
@given(st.sampled_from(SAMPLE_LINES), st.sampled_from(FIELDS), VALUES)
def test_a_field_of_another_type_is_read_or_refused(line: bytes, field: str, value: Any) -> None:
    read_or_refuse(json.dumps(json.loads(line) | {field: value}).encode())


@settings(deadline=None)
@given(
    st.sampled_from(["Bash", "Edit", "MultiEdit", "AskUserQuestion", "ExitPlanMode", "mcp__a__b"]),
    VALUES,
)
def test_any_input_of_a_tool_can_be_asked_about_and_answered(name: str, arguments: Any) -> None:
    dialect = make_dialect()
    line = json.dumps(can_use_tool(name, arguments), ensure_ascii=False)
    try:
        said = dialect.read(line.encode("utf-8", "replace"))
    except msgspec.MsgspecError:
        return
    for one in said:
        if isinstance(one, Ask):
            told = json.loads(dialect.answer(one, Answer("allow", replies=(("x",),) * 9)))
            assert told["response"]["response"]["behavior"] == "allow"
