from __future__ import annotations

import os
from pathlib import Path

import pytest

from takopi.config.load import load
from takopi.core.errors import ConfigInvalid, Problem
from tests.config.names import NAMES


def write(tmp_path: Path, data: bytes, *, mode: int = 0o600) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    path = home / "takopi.toml"
    path.write_bytes(data)
    path.chmod(mode)
    return path


def invalid(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(ConfigInvalid) as caught:
        load(path, NAMES, environ={})
    return caught.value.problems


def test_good_file_is_loaded(tmp_path: Path) -> None:
    path = write(tmp_path, b"chat_id = 5\n")
    assert load(path, NAMES, environ={}).chat_id == 5


def test_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    (problem,) = invalid(tmp_path / "takopi.toml")
    assert "there is no" in problem.what
    assert "takopi init" in problem.way_out


def test_folder_in_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "takopi.toml").mkdir()
    assert "is a folder" in invalid(tmp_path / "takopi.toml")[0].what


def test_pipe_in_place_of_the_file_is_a_problem_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "takopi.toml")
    assert "is not a file" in invalid(tmp_path / "takopi.toml")[0].what


def test_file_where_its_folder_should_be_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    assert "cannot be read: Not a directory" in invalid(tmp_path / "home" / "takopi.toml")[0].what


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_file_open_to_others_is_a_problem_with_the_command_that_mends_it(
    tmp_path: Path, mode: int
) -> None:
    path = write(tmp_path, b"", mode=mode)
    assert [problem.way_out for problem in invalid(path)] == [f"chmod 600 {path}"]


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_home_open_to_others_is_a_problem_with_the_command_that_mends_it(
    tmp_path: Path, mode: int
) -> None:
    path = write(tmp_path, b"")
    path.parent.chmod(mode)
    assert [problem.way_out for problem in invalid(path)] == [f"chmod 700 {path.parent}"]


def test_modes_are_reported_together_with_everything_else(tmp_path: Path) -> None:
    path = write(tmp_path, b"chat_id = 'x'", mode=0o644)
    path.parent.chmod(0o755)
    assert [problem.key for problem in invalid(path)] == ["", "", "chat_id"]


def test_command_that_mends_a_mode_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    home = tmp_path / "my home"
    home.mkdir(mode=0o700)
    (home / "takopi.toml").touch(mode=0o644)
    (home / "takopi.toml").chmod(0o644)
    assert invalid(home / "takopi.toml")[0].way_out == f"chmod 600 '{home}/takopi.toml'"
