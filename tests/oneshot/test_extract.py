from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.core.errors import UnusableAnswer
from takopi.oneshot.extract import read_json


class Arms(msgspec.Struct, frozen=True):
    count: int
    inner: dict[str, int] = {}


class Lax(msgspec.Struct, frozen=True):
    count: int = 0


@pytest.mark.parametrize(
    "answer",
    [
        '{"count": 8}',
        '\n\n {"count": 8} \n',
        '```json\n{"count": 8}\n```',
        '```\n{"count": 8}\n```\nI hope that helps.',
        'Here it is:\n\n  ```json\n  {"count": 8}\n  ```',
        'An octopus {of the sea} has: {"count": 8} {"count": 9}',
        '3 hearts, and {"count": 8}, so to speak',
        '"quoted" {\n"count": 8}',
        '{"count": 8, "note": "```"}',
        'Sure!\n{"count": 8, "note": "}{"}',
    ],
)
def test_json_is_found_bare_fenced_or_among_words(answer: str) -> None:
    assert read_json(answer, Arms) == Arms(8)


def test_a_list_is_found_bare_or_fenced() -> None:
    assert read_json("[1, 2]", list[int]) == [1, 2]
    assert read_json("So:\n```json\n[1, 2]\n```", list[int]) == [1, 2]


@pytest.mark.parametrize(
    "answer", ["", "eight", "\ud83d", '{"count": 8', "{count: 8}", "{" * 100_000]
)
def test_what_is_not_json_is_said_to_be_none(answer: str) -> None:
    with pytest.raises(UnusableAnswer, match="not JSON"):
        read_json(answer, Arms)


@pytest.mark.parametrize("answer", ["[" * 100_000, '{"a":' * 100_000, '{"inner":' * 100_000])
def test_nesting_without_end_is_an_unusable_answer(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        read_json(answer, Arms)


@pytest.mark.parametrize("answer", ['{"count": "8"}', "{}", "[8]", 'So: {"count": 8.5}.'])
def test_json_of_another_shape_is_refused_with_the_reason(answer: str) -> None:
    with pytest.raises(UnusableAnswer, match=r"does not fit: (Expected|Object)"):
        read_json(answer, Arms)


def test_a_piece_of_a_broken_object_is_not_taken_for_the_whole() -> None:
    with pytest.raises(UnusableAnswer):
        read_json('So: {"things": [{"count": 1}],}', Lax)


@given(st.text() | st.text(alphabet='{}[]":,`\n 1ax\\'))
def test_any_text_is_read_or_refused(answer: str) -> None:
    with suppress(UnusableAnswer):
        assert isinstance(read_json(answer, Arms), Arms)
