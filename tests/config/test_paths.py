from __future__ import annotations

import stat
from pathlib import Path

import pytest

from takopi.config.paths import Home, find_home, make_home
from takopi.core.errors import Unfit


def test_home_is_a_folder_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    home = find_home({})
    assert home.config_file == Path("/home/ada/.takopi/takopi.toml")
    assert home.state_file == Path("/home/ada/.takopi/state.db")


@pytest.mark.parametrize("named", ["~/elsewhere", "/home/ada/elsewhere"])
def test_variable_moves_the_home(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert find_home({"TAKOPI_HOME": named}).folder == Path("/home/ada/elsewhere")


def test_relative_home_is_made_absolute() -> None:
    assert find_home({"TAKOPI_HOME": "x"}).folder == Path.cwd() / "x"


def test_home_of_a_person_nobody_knows_is_refused() -> None:
    with pytest.raises(Unfit):
        find_home({"TAKOPI_HOME": "~nobody-of-that-name/x"})


def test_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b")
    make_home(home)
    make_home(home)
    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700


def test_home_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unfit) as caught:
        make_home(Home(tmp_path / "file" / "home"))
    assert "TAKOPI_HOME" in caught.value.way_out
