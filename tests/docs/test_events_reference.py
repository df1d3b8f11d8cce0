"""The reference of the events names every class of the contract, its fields, and their values."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, get_args

import pytest

from takopi import api
from takopi.core.events import ActionKind, Phase, Verdict
from takopi.engines.pump import MAX_OPEN_ASKS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/events.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
CLASSES: list[Any] = [
    api.EngineJob,
    api.EngineLimits,
    api.ResumeToken,
    api.Started,
    api.Action,
    api.Ask,
    api.Question,
    api.Choice,
    api.Answer,
    api.Completed,
    api.Usage,
]


def rows(section: str) -> dict[str, str]:
    """The first cell of every row, which names a member, and the second."""
    return dict(re.findall(r"^\| `(\w+)[^`]*` \| (.+?) \|", SECTIONS[section], re.MULTILINE))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_is_in_the_reference_in_its_order(cls: Any) -> None:
    assert [*rows(cls.__name__)] == [field.name for field in dataclasses.fields(cls)]


def test_every_member_of_an_engine_is_in_the_reference() -> None:
    assert set(rows("Engine")) == {name for name in vars(api.Engine) if not name.startswith("_")}


def test_no_other_class_is_in_the_reference() -> None:
    assert set(SECTIONS) == {cls.__name__ for cls in CLASSES} | {"Engine"}


@pytest.mark.parametrize(
    ("section", "field", "values"),
    [
        ("Action", "kind", get_args(ActionKind)),
        ("Action", "phase", get_args(Phase)),
        ("Answer", "verdict", get_args(Verdict)),
        ("Ask", "kind", ("approval", "question")),
    ],
)
def test_values_of_a_field_are_those_that_there_are(
    section: str, field: str, values: tuple[str, ...]
) -> None:
    assert rows(section)[field] == "one of " + ", ".join(f"`{value}`" for value in values)


def test_bound_of_open_asks_is_the_one_that_holds() -> None:
    assert f"At most {MAX_OPEN_ASKS} asks" in SECTIONS["Ask"]
