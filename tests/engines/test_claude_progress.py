from typing import Any

import msgspec
import pytest

from takopi.core.events import Action, Started
from takopi.core.ids import ResumeToken
from takopi.engines.claude.spec import SPEC
from takopi.engines.spec import Finished
from takopi.engines.wording import DETAIL_CHARS, TITLE_CHARS
from tests.engines.claude_talk import (
    CWD,
    INIT,
    RESULT,
    assistant,
    make_dialect,
    say,
    system,
    text,
    tool_result,
    tool_use,
)


def show_call(name: str, **arguments: Any) -> Action:
    (action,) = say(make_dialect(), assistant(tool_use(name, **arguments)))
    assert isinstance(action, Action)
    return action


def show_outcome(line: dict[str, Any], name: str, **arguments: Any) -> Action:
    _, action = say(make_dialect(), assistant(tool_use(name, **arguments)), line)
    assert isinstance(action, Action)
    return action


def test_the_thread_is_told_once() -> None:
    said = say(make_dialect(), INIT, RESULT, INIT)
    assert said[0] == Started(ResumeToken(SPEC.id, "s-1"), "opus")
    assert not any(isinstance(one, Started) for one in said[1:])


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "title"),
    [
        ("Bash", {"command": "ls\n  -l"}, "command", "ls -l"),
        ("Bash", {"command": f"cat {CWD}/a {CWD}-2/a"}, "command", f"cat a {CWD}-2/a"),
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
