import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from takopi.core.events import Action, Usage
from tests.engines.pi_talk import AGENT_END, assistant, make_dialect, say


def tool_start(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool_execution_start", "toolCallId": "c1", "toolName": name, "args": args}


def tool_end(name: str, words: str = "", *, failed: bool | None = False) -> dict[str, Any]:
    return {
        "type": "tool_execution_end",
        "toolCallId": "c1",
        "toolName": name,
        "result": {"content": [{"type": "text", "text": words}]},
        "isError": failed,
    }


@pytest.mark.parametrize(
    ("start", "end", "kind", "title", "ok", "detail"),
    [
        (tool_start("bash", command="ls"), tool_end("bash", "a\n"), "command", "ls", True, "a"),
        (
            tool_start("bash", command="ls"),
            tool_end("bash", "no\n\nexited with code 2", failed=True),
            *("command", "ls", False, "no\n\nexited with code 2"),
        ),
        (
            tool_start("edit", path="/home/user/project/a.py", edits=[]),
            tool_end("edit", "ok"),
            *("file_change", "edit a.py", True, ""),
        ),
        (
            tool_start("read", path="/x"),
            tool_end("read", "not there", failed=True),
            *("tool", "read /x", False, "not there"),
        ),
        (
            tool_start("mine", n=1),
            tool_end("mine", failed=None),
            *("tool", 'mine {"n": 1}', None, ""),
        ),
    ],
)
def test_a_tool_is_shown_from_its_start_to_its_end(
    start: dict[str, Any],
    end: dict[str, Any],
    kind: Any,
    title: str,
    ok: bool | None,
    detail: str,
) -> None:
    assert say(make_dialect(), start, end) == [
        Action("c1", kind, title, "started"),
        Action("c1", kind, title, ok=ok, detail=detail),
    ]


def test_an_end_without_a_start_is_shown_by_its_name() -> None:
    assert say(make_dialect(), tool_end("bash")) == [Action("c1", "tool", "bash", ok=True)]


@pytest.mark.parametrize("result", [None, 7, {"content": 7}, {"content": "words"}])
def test_a_result_of_any_shape_is_tolerated(result: object) -> None:
    dialect = make_dialect()
    say(dialect, tool_start("bash", command="ls"))

    (action,) = say(dialect, {**tool_end("bash"), "result": result})

    assert isinstance(action, Action)
    assert action.ok is True


def test_what_pi_says_on_the_way_is_a_note_and_its_last_message_the_answer() -> None:
    dialect = make_dialect()
    blocks = [
        {"type": "thinking", "thinking": "Hmm."},
        {"type": "text", "text": "First."},
        {"type": "text", "text": "Second.\n"},
    ]

    said = say(
        dialect,
        {"type": "message_end", "message": {"role": "user", "content": "do it"}},
        assistant("I will look.", stop="toolUse"),
        assistant(content=blocks),
        {"type": "message_end", "message": {"role": "toolResult", "content": []}},
        AGENT_END,
    )

    assert said == [Action("note_1", "note", "I will look."), Action("note_2", "note", "Hmm.")]
    assert dialect.end(0, "").answer == "First.\n\nSecond."


def test_tokens_and_cost_of_all_messages_are_summed_and_the_model_is_named() -> None:
    dialect = make_dialect()
    usage = {"input": 90, "output": 20, "cacheRead": 10, "cacheWrite": 1, "cost": {"total": 0.25}}

    say(
        dialect,
        assistant("a", stop="toolUse", usage=usage, model="m"),
        assistant("b", usage=usage),
        AGENT_END,
    )

    ending = dialect.end(0, "")
    assert (ending.usage, ending.model) == (Usage(202, 40, 20, 0.5), "m")


def test_an_answer_that_was_cut_is_marked() -> None:
    dialect = make_dialect()

    (warning,) = say(dialect, assistant("Half", stop="length"), AGENT_END)

    assert isinstance(warning, Action)
    assert warning.kind == "warning"
    assert dialect.end(0, "").ok


def test_compaction_is_shown_with_its_outcome() -> None:
    title = "Compacting the conversation"

    said = say(
        make_dialect(),
        {"type": "compaction_start", "reason": "threshold"},
        {"type": "compaction_end", "aborted": False, "errorMessage": "no room"},
    )

    assert said == [
        Action("compaction", "note", title, "started"),
        Action("compaction", "note", title, ok=False, detail="no room"),
    ]


@pytest.mark.parametrize("kind", ["agent_end", "message_update", "turn_end", "message_start"])
def test_a_line_that_repeats_the_history_is_never_built(kind: str) -> None:
    history = [{"role": "toolResult", "content": [{"type": "text", "text": "x" * 1000}]}] * 4000
    line = json.dumps({"type": kind, "messages": history, "message": history}).encode()
    dialect = make_dialect()

    tracemalloc.start()
    try:
        assert dialect.read(line) == ()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(line) > 8_000_000
    assert peak_bytes < 100_000


def test_many_tool_calls_leave_nothing_behind() -> None:
    dialect = make_dialect()
    pairs = [
        [json.dumps({**line, "toolCallId": f"c{number}"}).encode() for line in (start, end)]
        for number in range(2000)
        for start, end in [(tool_start("bash", command="ls"), tool_end("bash", "a"))]
    ]

    tracemalloc.start()
    try:
        for start, end in pairs:
            dialect.read(start)
            dialect.read(end)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept_bytes < 50_000


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"hologram","message":7}',
        b'{"type":"queue_update","steering":[],"followUp":[]}',
        b'{"message":[],"type":"hologram"}',
    ],
)
def test_what_pi_may_say_one_day_means_nothing_yet(line: bytes) -> None:
    assert make_dialect().read(line) == ()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Aborted.",
        b"[]",
        b"{}",
        b'{"type":"session"}',
        b'{"type":"message_end","message":7}',
        b'{"type":"message_end","message":{"role":"assistant","content":7}}',
        b'{"type":"message_end","message":{"role":"assistant","content":"\xff"}}',
        b'{"type":"session","id":"\xff"}',
        b'{"type":"agent_end","messages":' + b"[" * 100_000,
    ],
)
def test_a_line_of_another_language_raises_one_kind_of_error(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        make_dialect().read(line)
