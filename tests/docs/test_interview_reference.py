"""The reference of plans has every key of their files, and the formats of their buttons."""

from __future__ import annotations

import re
from typing import get_args

import msgspec

from takopi.interview.session import Option, Question, Session, State
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/interview.md").read_text(encoding="utf-8")
FILES, _, _ = PAGE.partition("## Buttons")
ROWS = re.findall(r"^\| (`.+?) \| (.+) \|$", FILES, re.MULTILINE)
KEYS = {key for cell, _ in ROWS for key in re.findall(r"`(\w+)`", cell)}
ONCE = "DONE"
"""The state of a plan that has ended, and whose file is gone."""


def names(shape: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(shape)}


def test_every_key_of_a_file_is_in_the_reference() -> None:
    assert names(Session) == KEYS


def test_shape_of_a_question_is_the_one_that_is_kept() -> None:
    what = dict(ROWS)["`questions`"]
    assert set(re.findall(r"`(\w+)`", what)) == names(Question) | names(Option)


def test_states_are_those_that_a_file_can_have() -> None:
    what = dict(ROWS)["`state`"]
    assert set(re.findall(r"`(\w+)`", what)) == set(get_args(State)) - {ONCE}
