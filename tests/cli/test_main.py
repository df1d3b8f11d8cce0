from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from takopi import __version__
from tests.cli.command import BIN, Takopi


@pytest.fixture
def takopi(tmp_path: Path) -> Takopi:
    """Started in the ordinary way: it is the start that these tests are about."""
    return Takopi(tmp_path.resolve())


HEAVY = {"trio", "typer", "rich", "anthropic", "mcp", "httpx2", "msgspec", "tomlkit"}


def imported(takopi: Takopi, *args: str) -> set[str]:
    outcome = takopi(*args, environ={"PYTHONPROFILEIMPORTTIME": "1"})
    assert outcome.code == 0, outcome.err
    return set(re.findall(r"\|\s+([\w.]+)$", outcome.err, re.MULTILINE))


def test_version_is_printed_without_importing_anything_heavy(takopi: Takopi) -> None:
    assert takopi("--version").out == f"takopi {__version__}\n"
    modules = imported(takopi, "--version")
    assert "takopi.cli.main" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    "args", [["config", "list"], ["config", "get", "chat_id"], ["config", "path"]]
)
def test_config_commands_do_not_import_trio(takopi: Takopi, args: list[str]) -> None:
    takopi.write("chat_id = 5\n")
    modules = imported(takopi, *args)
    assert "takopi.config.load" in modules
    assert not modules & {"trio", "anthropic", "mcp", "httpx2"}


def test_config_set_does_not_import_trio(takopi: Takopi) -> None:
    assert "trio" not in imported(takopi, "config", "set", "chat_id", "5")


def test_help_names_the_commands(takopi: Takopi) -> None:
    outcome = takopi("--help")
    assert outcome.code == 0
    assert "init" in outcome.out
    assert "config" in outcome.out


@pytest.mark.parametrize("args", [[], ["-v"], ["codex"], ["-v", "pi"]])
def test_takopi_does_not_run_without_a_config(takopi: Takopi, args: list[str]) -> None:
    outcome = takopi(*args)
    assert outcome.code == 78
    assert f"there is no {takopi.config_file}" in outcome.err
    assert "takopi init" in outcome.err


def test_takopi_does_not_run_without_a_token_and_a_chat(takopi: Takopi) -> None:
    takopi.write("default_engine = 'pi'\n")
    outcome = takopi()
    assert outcome.code == 78
    assert "bot_token" in outcome.err
    assert "chat_id" in outcome.err


@pytest.mark.parametrize(
    ("group", "command"), [("config", "unset"), ("session", "execute"), ("prompt", "preview")]
)
def test_group_alone_prints_its_help(takopi: Takopi, group: str, command: str) -> None:
    outcome = takopi(group)
    assert outcome.code == 0
    assert command in outcome.out
    assert not outcome.err


def test_words_of_an_error_stay_whole_on_a_narrow_terminal(takopi: Takopi) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 40))
    with subprocess.Popen(
        [BIN / "takopi", "config", "get", "chat_id", "extra", "words"],
        env=takopi.environ | {"NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        assert process.wait(120) == 1
    said = os.read(ours, 4096).decode().replace("\r", "")
    os.close(ours)
    assert said == (
        "error: Got unexpected extra argument(s)\n  (extra words)\n"
        "  `takopi config get --help` shows what\n  can be typed\n"
    )


def test_python_can_run_the_package(takopi: Takopi) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "takopi", "--version"],
        env=takopi.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == f"takopi {__version__}\n"


@pytest.mark.parametrize("args", [["bogus"], ["init", "a", "b"], ["config", "get"], ["--bogus"]])
def test_wrong_usage_is_one_sentence_and_exit_code_1(takopi: Takopi, args: list[str]) -> None:
    outcome = takopi(*args)
    assert outcome.code == 1
    assert outcome.err.startswith("error: ")
    assert "--help` shows what can be typed" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "args", [["--debug", "config", "get", "chat_id"], ["config", "get", "chat_id", "--debug"]]
)
def test_traceback_is_shown_only_on_demand(takopi: Takopi, args: list[str]) -> None:
    assert "Traceback" not in takopi("config", "get", "chat_id").err
    outcome = takopi(*args)
    assert "Traceback" in outcome.err
    assert outcome.err.endswith("error: chat_id is not set\n  `takopi config list` shows what is\n")
    assert outcome.code == 1


def test_home_that_cannot_be_made_ends_with_exit_code_2(takopi: Takopi) -> None:
    outcome = takopi("config", "set", "chat_id", "5", environ={"TAKOPI_HOME": "/proc/takopi"})
    assert outcome.code == 2
    assert "error: /proc/takopi cannot be made" in outcome.err
    assert "set TAKOPI_HOME to a folder that you may write to" in outcome.err


def test_reader_that_stops_early_is_no_error(takopi: Takopi) -> None:
    takopi.write("chat_id = 5\n")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            [BIN / "takopi", "config", "list"],
            env=takopi.environ,
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    assert done.stderr == b""


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_is_used_on_a_terminal_unless_it_is_unwanted(
    takopi: Takopi, tmp_path: Path, no_color: str, coloured: bool
) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [BIN / "takopi", "config", "get", "chat_id"],
        env=takopi.environ | {"NO_COLOR": no_color},
        stdin=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        assert process.wait(120) == 1
    said = os.read(ours, 4096)
    os.close(ours)
    assert b"error:" in said
    assert (b"\x1b[" in said) is coloured
