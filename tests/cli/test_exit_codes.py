"""Every code of docs/reference/exit-codes.md, and an error that is one sentence for each."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from takopi.cli.errors import ending
from takopi.core.errors import Refused, Unfit
from tests.cli.command import DEADLINE_S, Outcome, Takopi
from tests.docs.pages import ROOT


@pytest.fixture
def takopi(tmp_path: Path) -> Takopi:
    """Started in the ordinary way: it is the start that these tests are about."""
    return Takopi(tmp_path.resolve())


PAGE = ROOT / "docs/reference/exit-codes.md"
Way = Callable[[Takopi], Outcome]


def do_it(takopi: Takopi) -> Outcome:
    return takopi("config", "path")


def ask_wrongly(takopi: Takopi) -> Outcome:
    return takopi("config", "get", "chat_id")


def lack_systemd(takopi: Takopi) -> Outcome:
    takopi.write('transports = ["web"]\n')
    return takopi("service", "install", environ={"PATH": str(takopi.tools)})


def plan_badly(takopi: Takopi) -> Outcome:
    takopi.write('[oneshot]\nbackend = "demo"\n')
    takopi("session", "new", "say-hello")
    takopi("session", "plan", "-m", "Hello")
    (takopi.cwd / "demo").mkdir()
    (takopi.cwd / "demo/hello-1.txt").write_text("there", encoding="utf-8")
    return takopi("session", "execute", "-y")


def press_ctrl_c(takopi: Takopi) -> Outcome:
    return takopi.on_terminal("config", "set", "bot_token", answers=[("not shown", "\x03")])


def press_ctrl_c_while_engines_are_asked(takopi: Takopi) -> Outcome:
    takopi.write('transports = ["web"]\n')
    asked = takopi.folder / "asked"
    claude = takopi.tools / "claude"
    claude.write_text(f"#!/bin/sh\ntouch {asked}\nexec sleep 1000\n", encoding="utf-8")
    claude.chmod(0o755)

    def ctrl_c() -> str:
        deadline = time.monotonic() + DEADLINE_S
        while not asked.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return "\x03"

    return takopi.on_terminal("doctor", answers=[("looking around", ctrl_c)])


def have_no_config(takopi: Takopi) -> Outcome:
    return takopi()


WAYS: dict[int, Way] = {
    0: do_it,
    1: ask_wrongly,
    2: lack_systemd,
    3: plan_badly,
    4: press_ctrl_c,
    78: have_no_config,
}


@pytest.mark.parametrize("code", WAYS)
def test_code_is_what_the_page_says(takopi: Takopi, code: int) -> None:
    outcome = WAYS[code](takopi)
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.out + outcome.err


def test_ctrl_c_among_tasks_is_one_word_too(takopi: Takopi) -> None:
    outcome = press_ctrl_c_while_engines_are_asked(takopi)
    assert outcome.code == 4, outcome.out
    assert outcome.out.endswith("stopped\r\n")
    assert "Traceback" not in outcome.out


LATE, LOST = Unfit("it is late", way_out="wait"), OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("errors", "code", "said"),
    [
        ([LATE], 2, "error: it is late\n  wait\n"),
        ([ExceptionGroup("", [LATE])], 2, "error: it is late\n  wait\n"),
        ([LATE, Refused("it is wrong")], 2, "error: it is late\n  wait\n"),
        ([LOST], 2, "error: No space left on device\n"),
        ([LATE, KeyboardInterrupt()], 4, "stopped\n"),
        (
            [ExceptionGroup("", [LATE]), BaseExceptionGroup("", [KeyboardInterrupt()])],
            4,
            "stopped\n",
        ),
    ],
)
def test_group_of_errors_is_told_as_the_one_that_counts(
    capsys: pytest.CaptureFixture[str], errors: list[BaseException], code: int, said: str
) -> None:
    def command() -> None:
        raise BaseExceptionGroup("", errors)

    assert ending(command, debug=False) == code
    assert capsys.readouterr().err == said


def test_group_that_holds_a_bug_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise ExceptionGroup("", [LATE, KeyError("x")])

    assert ending(command, debug=False) == 1
    assert "takopi has a bug" in capsys.readouterr().err


def test_page_has_every_code_and_no_other() -> None:
    codes = re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert list(map(int, codes)) == list(WAYS)


@pytest.mark.parametrize("code", [1, 2, 78])
def test_error_is_one_sentence_and_a_way_out(takopi: Takopi, code: int) -> None:
    lines = WAYS[code](takopi).err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("  ")
