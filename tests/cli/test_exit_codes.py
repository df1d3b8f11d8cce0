"""Every code of docs/reference/exit-codes.md, and an error that is one sentence for each."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.cli.command import Outcome, Takopi
from tests.docs.pages import ROOT

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


def test_page_has_every_code_and_no_other() -> None:
    codes = re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert list(map(int, codes)) == list(WAYS)


@pytest.mark.parametrize("code", [1, 2, 78])
def test_error_is_one_sentence_and_a_way_out(takopi: Takopi, code: int) -> None:
    lines = WAYS[code](takopi).err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("  ")
