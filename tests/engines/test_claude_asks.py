import json
from typing import Any

import pytest

from takopi.core.events import Action, Answer, Ask, Question
from takopi.engines.claude.asks import PREVIEW_CHARS
from takopi.engines.spec import Reply, Withdrawn
from takopi.engines.wording import visible
from tests.engines.claude_talk import (
    assistant,
    can_use_tool,
    make_dialect,
    say,
    tool_use,
)


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
