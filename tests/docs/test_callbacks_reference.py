"""The reference of the buttons has every prefix that is registered, its fields and its words."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from takopi.core.messages import Press
from takopi.interview.view import INTERVIEW, read_press
from takopi.telegram.buttons import Codec
from tests.app.recording import ADA, CHAT, config_with, open_rig
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/callbacks.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w\w)` \| (.+?) \| .+ \|$", PAGE, re.MULTILINE))
SHOWN = re.findall(rf"`((?:{'|'.join(ROWS)}):[^`<]+)`", PAGE)
CODECS: dict[str, Codec[Any]] = {
    value.prefix: value
    for name, module in sorted(sys.modules.items())
    if name.startswith("takopi.")
    for value in vars(module).values()
    if isinstance(value, Codec)
}
"""Every codec of takopi; importing the daemon's desk has imported them all."""


def fields(codec: Codec[Any]) -> dict[str, Any]:
    """The fields of a press and their types, in order."""
    shape = codec.shape
    hints = get_type_hints(shape)
    return {field.name: hints[field.name] for field in dataclasses.fields(shape)}


def test_every_prefix_is_in_the_reference() -> None:
    assert set(ROWS) == set(CODECS)


@pytest.mark.parametrize("prefix", CODECS)
def test_fields_of_a_prefix_are_in_their_order(prefix: str) -> None:
    assert re.findall(r"`(\w+)`", ROWS[prefix]) == [*fields(CODECS[prefix])]


@pytest.mark.parametrize("prefix", CODECS)
def test_every_word_of_a_prefix_is_named(prefix: str) -> None:
    for hint in fields(CODECS[prefix]).values():
        if get_origin(hint) is Literal:
            said = ", ".join(f"`{word}`" for word in get_args(hint))
            assert f"one of {said}." in re.sub(r" \(\*[^)]*\)", "", PAGE.replace("\n", " "))


async def test_every_button_of_the_reference_is_heard(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with()) as rig:
        for data in SHOWN:
            assert rig.registry.route(Press("1", CHAT, 1, ADA, data)), data
    assert {data.partition(":")[0] for data in SHOWN} == set(CODECS)


def test_every_button_of_a_plan_means_something() -> None:
    shown = [press for data in SHOWN if (press := INTERVIEW.decode(data))]
    assert len(shown) == len(set(shown)) > 1
    for press in shown:
        assert read_press(press.what) is not None, press
