import json
import tracemalloc
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.core.events import Answer, Ask
from takopi.engines.tools import MAX_OPEN_CALLS
from tests.engines.claude_talk import (
    RESULT,
    assistant,
    can_use_tool,
    make_dialect,
    say,
    text,
    tool_result,
    tool_use,
)
from tests.engines.samples import load_sample, sample_paths

SAMPLE_LINES = [line for path in sample_paths("claude") for line in load_sample(path).lines]


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
