"""S2, the ground of it: a known secret is in no log line, however it got there."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.kit.log import Redactor

CANARY = "123456:AAcanary-token_9"
SPELLINGS: list[Callable[[str], str]] = [
    str,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: urllib.parse.quote(text, safe=""),
    urllib.parse.quote,
]

PROGRAM = """
import logging, sys
import structlog
from takopi.kit import log

canary = sys.stdin.read()
redactor = log.configure(level="info", secrets=[canary], as_json=sys.argv[1] == "json")
logger = structlog.get_logger("test")
structlog.contextvars.bind_contextvars(run=17)
logger.info("run.started", url=f"https://host/bot{canary}/getMe", bytes=canary.encode())
logger.debug("not.shown", word="invisible")
logging.getLogger("httpx2").info("GET %s", canary)
logging.getLogger("httpx2").warning("noticed %s", canary)
logging.getLogger("someone.else").info("other library")
late = "later-secret-value"
redactor.hide(late)
logger.info("late.secret", late=late)
try:
    raise ValueError(canary)
except ValueError:
    logger.exception("run.failed")
raise RuntimeError(f"uncaught {canary}")
"""


@pytest.fixture(params=["json", "console"])
def lines(request: pytest.FixtureRequest) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(request.param)],
        input=CANARY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert not done.stdout
    assert done.returncode == 1
    return done.stderr.splitlines()


def test_secret_is_in_no_line_and_everything_else_is_there(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert CANARY not in text
    assert "later-secret-value" not in text
    for word in ("run.started", "noticed", "other library", "run.failed", "uncaught", "ValueError"):
        assert word in text
    assert "https://host/bot[hidden]/getMe" in text
    assert "run" in lines[0]
    assert "17" in lines[0]


def test_what_is_below_the_level_or_chatter_of_http_is_not_logged(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert "not.shown" not in text
    assert "GET" not in text


def test_json_lines_are_json() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "json"],
        input=CANARY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert events[0] == "run.started"
    assert events[-1] == "process.crashed"


@given(secret=st.text(min_size=4), around=st.text())
def test_no_spelling_of_a_secret_survives(secret: str, around: str) -> None:
    secret = secret.encode("utf-8", "replace").decode()
    text = around.encode("utf-8", "replace").decode() + secret
    clean = Redactor([secret]).clean
    for spell in SPELLINGS:
        for left in clean(spell(text).encode()).split(b"[hidden]"):
            assert not any(other(secret).encode() in left for other in SPELLINGS)


def test_each_spelling_of_a_secret_is_hidden_whole() -> None:
    secret = "a/b\"c\\d'é\n%"
    redactor = Redactor([secret])
    for spell in SPELLINGS:
        assert redactor.clean(b"<" + spell(secret).encode() + b">") == b"<[hidden]>"


def test_secret_that_holds_another_is_hidden_whole() -> None:
    assert Redactor(["secret", "secret-and-more"]).clean(b"secret-and-more") == b"[hidden]"


def test_line_that_is_no_unicode_is_written_all_the_same() -> None:
    program = "import sys; from takopi.kit import log; import structlog; log.configure();"
    program += "structlog.get_logger().info(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", program, b"caf\xe9"], capture_output=True, check=True, timeout=60
    )
    assert b"caf\\udce9" in done.stderr
    assert b"Logging error" not in done.stderr


def test_empty_secret_hides_nothing() -> None:
    assert Redactor([""]).clean(b"words") == b"words"
