"""The reference of the config names every key, with the default and the values it takes."""

from __future__ import annotations

import re
import tomllib

import pytest

from takopi.cli.names import known_names
from takopi.config.load import find_problems
from tests.config.keys import ANY, Key, every_key, shared_names
from tests.docs.pages import ROOT

KEYS = every_key()
NONE = "\N{EN DASH}"
ROW = re.compile(
    r"^\| `(?P<key>[^`]+)` \| (?P<value>.+?) \| (?P<default>.+?) \| .+ \|$", re.MULTILINE
)
ROWS = {
    row["key"]: row
    for row in ROW.finditer((ROOT / "docs/reference/config.md").read_text(encoding="utf-8"))
}


def written(key: Key) -> str:
    """The key as the page writes it."""
    if key[0] in known_names().engines and key[1] in shared_names():
        key = ("<engine>", key[1])
    return ".".join(key).replace(ANY, "<alias>")


@pytest.mark.parametrize("key", KEYS, ids=".".join)
def test_every_key_is_in_the_reference_with_its_default(key: Key) -> None:
    shown = ROWS[written(key)]["default"]
    default = KEYS[key]
    if default is None:
        assert shown == NONE
    else:
        assert tomllib.loads(f"x = {shown.strip('`')}")["x"] == default


@pytest.mark.parametrize("key", KEYS, ids=".".join)
def test_reference_says_of_a_value_what_takopi_says(key: Key) -> None:
    real = ".".join(key).replace(ANY, "z80")
    found = find_problems(f"{real} = 2020-01-01".encode(), known_names(), environ={})
    said = next(problem.what for problem in found if problem.key == real)
    kind = said.removeprefix("must be ").removesuffix(", not a date")
    assert ROWS[written(key)]["value"].startswith(kind)


def test_reference_has_no_key_that_is_not_there() -> None:
    assert set(ROWS) == {written(key) for key in KEYS}
