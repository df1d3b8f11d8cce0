"""The page of the house shows the rooms that there are, on the floors of the contract."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/explanation/house.md").read_text(encoding="utf-8")
ROOMS = {folder.parent.name for folder in (ROOT / "takopi").glob("*/__init__.py")}


def test_floors_are_those_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    floors = [set(re.findall(r"\w+", layer)) & ROOMS for layer in layers]
    rows = re.findall(r"^\| \w+ \| ((?:`\w+` ?)+) \|$", PAGE, re.MULTILINE)
    assert [set(re.findall(r"\w+", row)) for row in rows] == floors


def test_every_room_says_what_is_in_it() -> None:
    assert set(re.findall(r"^\| `(\w+)` \| \S", PAGE, re.MULTILINE)) == ROOMS
