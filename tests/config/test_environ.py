import sys
from pathlib import Path

from takopi.config.environ import child_environ


def test_child_sees_neither_secrets_nor_what_is_takopis_own() -> None:
    environ = {
        "HOME": "/h",
        "TAKOPI_BOT_TOKEN": "1:a",
        "NOTIFY_SOCKET": "/run/x",
        "WATCHDOG_USEC": "1",
        "LISTEN_FDS": "1",
        "VIRTUAL_ENV": sys.prefix,
        "URL": "https://host/bot1:secret/x",
    }
    got = child_environ(environ, secrets=("1:secret", ""), cwd=Path("/w"), extra={"A": "b"})
    assert got == {"HOME": "/h", "A": "b", "PWD": "/w"}


def test_child_does_not_hear_of_the_session_that_takopi_was_started_from() -> None:
    environ = {"CLAUDECODE": "1", "CLAUDE_CODE_MESSAGING_TOKEN": "x", "CLAUDE_CONFIG_DIR": "/c"}
    got = child_environ(environ, secrets=(), cwd=Path("/w"), extra={})
    assert got == {"CLAUDE_CONFIG_DIR": "/c", "PWD": "/w"}


def test_what_an_engines_table_adds_has_the_last_word_but_not_over_the_folder() -> None:
    extra = {"CLAUDE_EFFORT": "high", "PWD": "/elsewhere"}
    got = child_environ({"CLAUDE_EFFORT": "low"}, secrets=(), cwd=Path("/w"), extra=extra)
    assert got == {"CLAUDE_EFFORT": "high", "PWD": "/w"}
