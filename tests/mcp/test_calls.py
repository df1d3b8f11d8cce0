from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.core.errors import Refused
from takopi.core.tools import MCPToolCall
from takopi.mcp.arguments import check_arguments
from takopi.mcp.calls import UNREADABLE, mentions_calls, parse_tool_calls, text_around
from takopi.mcp.content import cap

ONE = '{"tool_calls": [{"name": "t__add", "arguments": {"a": 1}}]}'
CALL = MCPToolCall("t__add", {"a": 1})
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ENDLESS = "^(a+)+$"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
HELD_UP: list[dict[str, Any]] = [
    {"properties": {"a": {"pattern": ENDLESS}}},
    {"properties": {"a": {"$schema": DRAFT_7, "pattern": ENDLESS}}},
    {"patternProperties": {ENDLESS: {}}},
    {"patternProperties": {ENDLESS: {}}, "additionalProperties": False},
    {"allOf": [{"patternProperties": {ENDLESS: {}}}], "unevaluatedProperties": False},
]


@pytest.mark.parametrize(
    ("response", "around"),
    [
        (ONE, ""),
        (f"\n {ONE} \n", ""),
        (f"```json\n{ONE}\n```", ""),
        (f"~~~\n{ONE}\n~~~", ""),
        (f"I look.\n\n```\n{ONE}\n```\n\nThen I go on.", "I look.\n\nThen I go on."),
        (f"```sh\nls\n```\n```json\n{ONE}\n```", "```sh\nls\n```"),
        (f"I look.\n{ONE}\nDone.", "I look.\n\nDone."),
        (f"```json\n{ONE}", ""),
    ],
)
def test_calls_are_found_wherever_they_may_stand(response: str, around: str) -> None:
    assert parse_tool_calls(response) == [CALL]
    assert text_around(response) == around


@pytest.mark.parametrize(
    "response",
    [
        "Hello",
        f"I would write {ONE} in such a case.",
        f"````\n```json\n{ONE}\n```\n````",
        '{"calls": []}',
        'It says:\n\n```json\n{"id": 7, "tool_calls": null}\n```',
    ],
)
def test_what_only_looks_like_calls_is_text(response: str) -> None:
    assert parse_tool_calls(response) == []
    assert text_around(response) == response


@pytest.mark.parametrize(
    "broken",
    [
        ONE[:-1],
        '{"tool_calls": "none"}',
        '{"tool_calls": [{"name": "t__add", "arguments": {"a": NaN}}]}',
        '{"tool_calls": [{"name": "t__add", "arguments": {"a": "two\nlines"}}]}',
        '{"tool_calls": ' + "[" * 100_000,
        ONE + "]",
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "I look.\n\n```json\n{}\n```", "I look.\n{}", "{}\n\nDone."]
)
def test_broken_calls_are_one_that_will_fail_and_no_text(broken: str, around: str) -> None:
    response = around.replace("{}", broken)
    assert parse_tool_calls(response)[-1].name in {"", "t__add"}
    assert "tool_calls" not in text_around(response)
    assert text_around(response).startswith("I look.") == around.startswith("I look.")


@pytest.mark.parametrize("between", ["", " ", "\n", "\n\n"])
@pytest.mark.parametrize("around", ["{}", "```\n{}\n```", "I look.\n{}\nDone."])
def test_calls_in_a_row_are_all_found(between: str, around: str) -> None:
    response = around.replace("{}", f"{ONE}{between}{ONE}")
    assert parse_tool_calls(response) == [CALL, CALL]
    assert "tool_calls" not in text_around(response)


def test_broken_call_after_a_good_one_is_not_shown() -> None:
    response = f"I look.\n{ONE} {ONE[:-1]}"
    assert parse_tool_calls(response) == [CALL, UNREADABLE]
    assert text_around(response) == "I look."


def test_reading_broken_calls_takes_no_longer_the_more_there_are() -> None:
    began = time.thread_time()
    text_around('{"tool_calls": [\n\n' * 50_000)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("size", range(1, len(ONE)))
def test_note_that_was_cut_off_in_a_call_is_known_as_one(size: int) -> None:
    cut = f"I will look. {ONE[:size]}…"
    assert mentions_calls(cut) == (size > len('{"'))


def test_several_calls_are_found_in_their_order() -> None:
    entries = ", ".join(f'{{"name": "t__{name}"}}' for name in "abc")
    found = parse_tool_calls(f'{{"tool_calls": [{entries}]}}')
    assert found == [MCPToolCall(f"t__{name}", {}) for name in "abc"]


def test_entry_that_is_no_call_is_kept_as_one_that_will_fail() -> None:
    assert parse_tool_calls('{"tool_calls": [7, {"name": 8}]}') == [
        MCPToolCall("", 7),
        MCPToolCall("", {}),
    ]


@given(st.text(alphabet=st.sampled_from('`~\n {}[]":tool_callsname,')))
def test_any_text_can_be_read(text: str) -> None:
    parse_tool_calls(text + ONE)
    text_around(text)


def test_arguments_that_fit_the_schema_pass() -> None:
    assert check_arguments(SCHEMA, {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "must be a JSON object"),
        ({}, "'a' is a required property"),
        ({"a": "x"}, r"bad arguments at \['a'\]"),
        ({"a": "\ud800"}, "not Unicode"),
        ({"a": "x" * 2_000_000}, "more than"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: object, why: str) -> None:
    with pytest.raises(Refused, match=why):
        check_arguments(SCHEMA, arguments)


@pytest.mark.parametrize("schema", [{"type": 7}, {"$ref": "http://127.0.0.1:9/schema"}])
def test_schema_that_cannot_be_used_refuses_the_call(schema: dict[str, object]) -> None:
    with pytest.raises(Refused, match="the tool's own schema"):
        check_arguments(schema, {"a": 1})


@pytest.mark.parametrize("schema", HELD_UP)
def test_regular_expression_of_a_schema_holds_nothing_up(schema: dict[str, object]) -> None:
    text = "a" * 60 + "b"
    code = (
        "from takopi.mcp.arguments import check_arguments;"
        f"check_arguments({schema!r}, {{'a': {text!r}, {text!r}: 1}})"
    )
    # Nothing but its own process can end one that does not end.
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_argument_that_is_named_pattern_is_checked() -> None:
    with pytest.raises(Refused, match=r"bad arguments at \['pattern'\]"):
        check_arguments({"properties": {"pattern": {"type": "string"}}}, {"pattern": 7})


@given(st.text(max_size=60), st.integers(1, 40))
def test_output_is_cut_to_its_bytes(text: str, max_bytes: int) -> None:
    kept = cap(text, max_bytes).partition("\n[cut after")[0]
    assert len(kept.encode()) <= max_bytes
    assert text.startswith(kept)
