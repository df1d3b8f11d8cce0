"""The example config is complete, true and usable, as it is and with every sample switched on."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from takopi.cli.names import known_names
from takopi.config.load import load
from takopi.config.loaded import Config
from tests.config.keys import every_key, find_all

EXAMPLE = Path(__file__).parents[2] / "takopi.example.toml"
TEXT = EXAMPLE.read_text(encoding="utf-8")
# What begins with a space after the # is a remark, everything else a key or a table.
ALL_ON = re.sub(r"^#(?=\S)", "", TEXT, flags=re.MULTILINE)
KEYS = every_key()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person who has the token in the file that the example names."""
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / ".takopi"
    home.mkdir(mode=0o700)
    (home / "bot_token").touch(mode=0o600)
    (home / "bot_token").write_text("1:a", encoding="utf-8")
    return home


def loaded(home: Path, text: str, *, to_run: bool) -> Config:
    path = home / "takopi.toml"
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return load(path, known_names(), environ={}, to_run=to_run)


def without(text: str, *starts: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(starts))


def test_example_as_it_is_means_the_same_as_an_empty_file(home: Path) -> None:
    assert loaded(home, TEXT, to_run=False) == loaded(home, "", to_run=False)


@pytest.mark.parametrize("other", ["bot_token =", "bot_token_file ="])
def test_example_with_every_sample_on_is_enough_to_run(home: Path, other: str) -> None:
    # There is one token; and a group needs somebody who is let in.
    text = without(ALL_ON, other).replace("allowed_user_ids = []", "allowed_user_ids = [5]")
    config = loaded(home, text, to_run=True)
    assert config.bot_token
    assert config.default_project in config.projects


@pytest.mark.parametrize("key", KEYS, ids=".".join)
def test_every_key_is_in_the_example_with_its_default(key: tuple[str, ...]) -> None:
    default = KEYS[key]
    shown = find_all(tomllib.loads(ALL_ON), key)
    assert shown, f"{'.'.join(key)} is not in {EXAMPLE.name}"
    if default is None:
        assert not find_all(tomllib.loads(TEXT), key), "a sample must be commented out"
    else:
        assert shown == [default]


def test_every_line_of_the_example_says_why() -> None:
    for line in ALL_ON.splitlines():
        if line and not line.startswith(("#", "[")):
            assert re.search(r"  # \S", line), line
