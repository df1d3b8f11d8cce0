from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.names import keys, parsed, problems


def test_token_of_the_environment_wins_over_the_file() -> None:
    environ = {"TAKOPI_BOT_TOKEN": " 2:b\n"}
    assert parsed("bot_token = '1:a'", environ=environ).bot_token == "2:b"
    assert parsed("", environ=environ).bot_token == "2:b"


def test_empty_variable_is_no_token() -> None:
    assert parsed("bot_token = '1:a'", environ={"TAKOPI_BOT_TOKEN": ""}).bot_token == "1:a"


def test_token_is_read_from_its_own_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("3:c\n")
    file.chmod(0o600)
    assert parsed(f"bot_token_file = '{file}'").bot_token == "3:c"


def test_token_file_is_not_read_when_the_environment_has_a_token(tmp_path: Path) -> None:
    config = parsed(f"bot_token_file = '{tmp_path}/none'", environ={"TAKOPI_BOT_TOKEN": "2:b"})
    assert config.bot_token == "2:b"


def test_token_and_token_file_together_are_a_problem(tmp_path: Path) -> None:
    text = f"bot_token = '1:a'\nbot_token_file = '{tmp_path}/token'"
    assert keys(text, to_run=True) == ["bot_token_file", "chat_id"]


def test_token_file_open_to_others_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("3:c")
    file.chmod(0o644)
    (problem,) = problems(f"bot_token_file = '{file}'")
    assert (problem.key, problem.way_out) == ("bot_token_file", f"chmod 600 {file}")


@pytest.mark.parametrize("name", ["missing", "folder"])
def test_token_file_that_cannot_be_read_is_a_problem(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir(mode=0o700)
    assert keys(f"bot_token_file = '{tmp_path / name}'") == ["bot_token_file"]


@pytest.mark.parametrize(
    "content", [b"", b"hunter2", b"\xff\xfe", b"1:a\n2:b", b"1:" + b"x" * 9000]
)
def test_token_file_without_a_token_is_a_problem_that_does_not_repeat_it(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    (problem,) = problems(f"bot_token_file = '{file}'")
    assert problem.what == "is not a bot token"


@pytest.mark.parametrize("token", ["hunter2", "1:", ":a", "1:a b", "\u0661:a"])
def test_text_that_is_no_token_is_a_problem_that_does_not_repeat_it(token: str) -> None:
    (problem,) = problems(f"bot_token = '{token}'")
    assert (problem.key, problem.what) == ("bot_token", "is not a bot token")
    assert keys("", environ={"TAKOPI_BOT_TOKEN": token}, to_run=True) == [
        "TAKOPI_BOT_TOKEN",
        "chat_id",
    ]
