from __future__ import annotations

import stat
import subprocess
import tomllib
from typing import Any

import pytest

from tests.cli.command import BIN, DEADLINE_S, Takopi

CANARY = "123456:canary-canary"


def test_path_is_printed_whether_the_file_exists_or_not(takopi: Takopi) -> None:
    assert takopi("config", "path").out == f"{takopi.config_file}\n"


def test_variable_moves_the_home(takopi: Takopi) -> None:
    outcome = takopi("config", "path", environ={"TAKOPI_HOME": "/elsewhere"})
    assert outcome.out == "/elsewhere/takopi.toml\n"


@pytest.mark.parametrize(
    ("key", "typed", "value"),
    [
        ("chat_id", "5", 5),
        ("default_engine", "codex", "codex"),
        ("default_engine", '"codex"', "codex"),
        ("allowed_user_ids", "[1, 2]", [1, 2]),
        ("limits.idle_s", "1.5", 1.5),
        ("claude.use_api_billing", "true", True),
        ("claude.model", "a b = c", "a b = c"),
        ("claude.model", "1\nchat_id = 5", "1\nchat_id = 5"),
        ("claude.env", '{ A = "b" }', {"A": "b"}),
        ("claude.extra_args", '["--x"]', ["--x"]),
    ],
)
def test_value_is_toml_if_it_can_be_and_text_otherwise(
    takopi: Takopi, key: str, typed: str, value: object
) -> None:
    assert takopi("config", "set", key, typed).code == 0
    found: Any = tomllib.loads(takopi.config_file.read_text(encoding="utf-8"))
    for part in key.split("."):
        found = found[part]
    assert found == value


def test_negative_number_is_a_value_and_no_option(takopi: Takopi) -> None:
    takopi.write("allowed_user_ids = [5]\n")
    assert takopi("config", "set", "chat_id", "-100123").code == 0
    assert takopi("config", "get", "chat_id").out == "-100123\n"


def test_set_makes_home_and_file_for_their_owner_alone(takopi: Takopi) -> None:
    takopi("config", "set", "chat_id", "5")
    assert stat.S_IMODE(takopi.home.stat().st_mode) == 0o700
    assert stat.S_IMODE(takopi.config_file.stat().st_mode) == 0o600


def test_get_prints_text_bare_and_the_rest_as_toml(takopi: Takopi) -> None:
    takopi.write("default_engine = 'codex'\nallowed_user_ids = [1]\n[limits]\nmax_runs = 2\n")
    assert takopi("config", "get", "default_engine").out == "codex\n"
    assert takopi("config", "get", "allowed_user_ids").out == "[1]\n"
    assert takopi("config", "get", "limits").out == "{max_runs = 2}\n"


@pytest.mark.parametrize("command", ["get", "unset"])
def test_key_that_is_not_set_is_exit_code_1(takopi: Takopi, command: str) -> None:
    outcome = takopi("config", command, "chat_id")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("error: chat_id is not set\n")


def test_unset_takes_the_key_out(takopi: Takopi) -> None:
    takopi.write("# mine\nchat_id = 5\ndefault_engine = 'pi'\n")
    assert takopi("config", "unset", "chat_id").code == 0
    assert takopi.config_file.read_text(encoding="utf-8") == "# mine\ndefault_engine = 'pi'\n"


def test_bad_value_is_refused_and_nothing_written(takopi: Takopi) -> None:
    outcome = takopi("config", "set", "limits.max_runs", "0")
    assert outcome.code == 78
    assert outcome.err == "error: limits.max_runs: must be a whole number from 1 to 64, not 0\n"
    assert not takopi.home.exists()


def test_unknown_key_is_refused_with_the_nearest_one(takopi: Takopi) -> None:
    outcome = takopi("config", "set", "claude.permision_mode", "plan")
    assert outcome.code == 78
    assert "did you mean `permission_mode`?" in outcome.err


def test_unknown_key_near_none_is_not_to_be_taken_out_of_a_file_that_has_it_not(
    takopi: Takopi,
) -> None:
    outcome = takopi("config", "set", "zzz", "5")
    assert outcome.code == 78
    assert outcome.err == (
        "error: zzz: takopi knows no such key\n  takopi.example.toml has every key\n"
    )


def test_list_shows_what_is_set_with_secrets_masked(takopi: Takopi) -> None:
    takopi.write(f"bot_token = '{CANARY}'\nchat_id = 5\n[claude.env]\nKEY = 'canary'\n")
    outcome = takopi("config", "list")
    assert outcome.out == 'bot_token = "********"\nchat_id = 5\nclaude.env.KEY = "********"\n'
    assert outcome.code == 0


def test_list_without_a_file_says_how_to_make_one(takopi: Takopi) -> None:
    outcome = takopi("config", "list")
    assert (outcome.code, outcome.out) == (0, "")
    assert "takopi init" in outcome.err


def test_list_reports_every_problem_and_exit_code_78(takopi: Takopi) -> None:
    takopi.write(
        "chat_id = 'x'\nsession_mode = 'y'\ndefault_engine = 'z'\nnonsense = 1\n"
        "limits.max_runs = 0\n"
    )
    outcome = takopi("config", "list")
    assert outcome.code == 78
    lines = outcome.err.splitlines()
    assert lines[0] == "error: the config has 5 problems"
    assert len(lines) == 6
    assert "nonsense = 1" in outcome.out


def test_list_reports_modes_with_the_commands_that_mend_them(takopi: Takopi) -> None:
    takopi.write("chat_id = 5\n")
    takopi.config_file.chmod(0o644)
    takopi.home.chmod(0o755)
    outcome = takopi("config", "list")
    assert outcome.code == 78
    assert f"(chmod 700 {takopi.home})" in outcome.err
    assert f"(chmod 600 {takopi.config_file})" in outcome.err


def test_file_that_is_no_toml_is_exit_code_78_with_the_place(takopi: Takopi) -> None:
    takopi.write("chat_id = \n")
    for args in (["list"], ["get", "chat_id"], ["set", "chat_id", "5"], ["unset", "chat_id"]):
        outcome = takopi("config", *args)
        assert outcome.code == 78
        assert outcome.err == (
            "error: takopi.toml, line 1, column 11: not TOML: invalid value\n"
            "  mend it there; `takopi config path` prints the place of the file\n"
        )


def test_token_is_read_from_stdin(takopi: Takopi) -> None:
    assert takopi("config", "set", "bot_token", stdin=f"{CANARY}\n").code == 0
    assert takopi("config", "get", "bot_token").out == f"{CANARY}\n"


def test_token_is_typed_hidden_on_a_terminal(takopi: Takopi) -> None:
    outcome = takopi.on_terminal(
        "config", "set", "bot_token", answers=[("bot_token (not shown)", f"{CANARY}\n")]
    )
    assert outcome.code == 0
    assert "canary" not in outcome.out
    assert takopi("config", "get", "bot_token").out == f"{CANARY}\n"


def test_token_on_the_command_line_is_refused(takopi: Takopi) -> None:
    outcome = takopi("config", "set", "bot_token", CANARY)
    assert outcome.code == 1
    assert "canary" not in outcome.err
    assert not takopi.home.exists()


def test_text_that_is_no_token_is_refused_and_not_repeated(takopi: Takopi) -> None:
    outcome = takopi("config", "set", "bot_token", stdin="canary")
    assert outcome.code == 78
    assert "canary" not in outcome.err
    assert not takopi.home.exists()


def test_empty_token_is_refused(takopi: Takopi) -> None:
    assert takopi("config", "set", "bot_token", stdin="\n").code == 1


def test_value_of_an_ordinary_key_must_be_given(takopi: Takopi) -> None:
    outcome = takopi("config", "set", "chat_id", stdin="5")
    assert outcome.code == 1
    assert "takopi config set chat_id VALUE" in outcome.err


def test_write_that_fails_leaves_the_old_file_alone_and_exit_code_2(takopi: Takopi) -> None:
    takopi.write("chat_id = 5\n")
    # Stands for a full disk: not one byte may be written to any file.
    script = f'ulimit -f 0; "{BIN / "takopi"}" config set chat_id 6'
    done = subprocess.run(
        ["sh", "-c", script],
        env=takopi.environ,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2
    assert f"error: {takopi.config_file} cannot be written: File too large\n" in done.stderr
    assert "the file is as it was" in done.stderr
    assert takopi.config_file.read_text(encoding="utf-8") == "chat_id = 5\n"
    assert list(takopi.home.iterdir()) == [takopi.config_file]
