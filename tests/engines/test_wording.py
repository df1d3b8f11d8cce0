import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.engines.wording import (
    clip,
    describe_exit,
    explain_exit,
    explain_failure,
    last_words,
    shorten,
    tail,
    unwrap_error,
    visible,
    with_login,
)

BACKTRACE = """\
WARNING: proceeding, even though we could not create PATH aliases
Error: thread/resume: no rollout found for thread id 0 (code -32600)

Stack backtrace:
   0: <unknown>
   1: <unknown>
"""

NODE_TRACE = """\
node:events:497
      throw er; // Unhandled 'error' event
      ^

Error: write EPIPE
    at afterWriteDispatched (node:internal/stream_base_commons:159:15) {
  code: 'EPIPE'
}

Node.js v22.23.3
"""

NO_KEY = """\
No API key found for the selected model.

Use /login to log into a provider via OAuth or API key. See:
  /usr/lib/docs/providers.md
"""


@settings(deadline=None)
@given(st.text(), st.integers(10, 200))
def test_a_title_is_one_line_within_its_limit(text: str, limit: int) -> None:
    title = shorten(text, limit)

    assert len(title) <= limit
    assert len(title.splitlines()) <= 1
    assert "\x1b" not in title


@settings(deadline=None)
@given(st.text(), st.integers(10, 200))
def test_beginnings_and_ends_stay_within_their_limit(text: str, limit: int) -> None:
    assert len(clip(text, limit)) <= limit
    assert len(tail(text, limit)) <= limit


def test_a_title_says_with_an_ellipsis_that_something_is_missing() -> None:
    assert shorten("a  b\n\tc", 10) == "a b c"
    assert shorten("ten letter", 10) == "ten letter"
    assert shorten("ten letters", 10) == "ten lette…"
    assert shorten("a" + " " * 5000 + "b", 10).endswith("…")


def test_the_beginning_of_a_text_survives_any_amount_of_blank_before_it() -> None:
    assert shorten("\n" * 100_000 + "words", 20) == "words"


def test_colours_are_no_part_of_a_title() -> None:
    assert shorten("\x1b[91m\x1b[1mError: \x1b[0mno\x07") == "Error: no"


def test_the_end_of_an_output_keeps_its_lines() -> None:
    assert tail("one\n\x1b[32mtwo\x1b[0m\n") == "one\ntwo"
    assert tail("x" * 1000 + "\nlast line", 12) == "…x\nlast line"


def test_the_beginning_of_a_text_keeps_its_lines() -> None:
    assert clip("one\ntwo\n") == "one\ntwo"
    assert clip("first line\n" + "x" * 1000, 12) == "first line…"


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\r", "\\u000d"),
        ("\x1b", "\\u001b"),
        ("\xa0", "\\u00a0"),
        ("\xad", "\\u00ad"),
        ("\u200b", "\\u200b"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
        ("\u2066", "\\u2066"),
        ("\u2800", "\\u2800"),
        ("\u3164", "\\u3164"),
        ("\ud83d", "\\ud83d"),
        ("\ufeff", "\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\U000e0101", "\\U000e0101"),
    ],
    ids=lambda text: text.encode("unicode_escape").decode(),
)
def test_a_character_that_could_hide_something_is_spelled_out(hidden: str, shown: str) -> None:
    assert visible(f"rm{hidden} x") == f"rm{shown} x"
    assert visible(hidden) == shown


def test_what_can_be_seen_is_shown_as_it_is() -> None:
    seen = "if x:\n\tprint('é ß 漢字 ✓ 🐙 ❤️')\n"
    assert visible(seen) == seen


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("", ""),
        ("\n  \n", ""),
        ("WARNING: nothing to worry about\n", ""),
        (BACKTRACE, "thread/resume: no rollout found for thread id 0 (code -32600)"),
        (NODE_TRACE, "write EPIPE"),
        (NO_KEY, "No API key found for the selected model."),
        ("\x1b[91m\x1b[1mError: \x1b[0mSession not found\n", "Session not found"),
        ("   indented and alone\n", "indented and alone"),
        ("Traceback (most recent call last):\n  File x\nValueError: no\n", "ValueError: no"),
    ],
)
def test_the_last_words_are_the_line_that_says_why(stderr: str, words: str) -> None:
    assert last_words(stderr) == words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (1, "exited with code 1"),
        (-signal.SIGKILL, "was ended by SIGKILL"),
        (-200, "was ended by signal 200"),
        (143, "exited with code 143 (SIGTERM)"),
        (255, "exited with code 255"),
    ],
)
def test_an_exit_names_its_code_or_signal(code: int, words: str) -> None:
    assert describe_exit(code) == words


def test_an_exit_without_a_result_is_one_sentence_with_the_reason_if_there_is_one() -> None:
    assert explain_exit("x", 1, stderr="") == "x exited with code 1 without a result."
    assert explain_exit("x", -9, stderr="Error: out of memory\n") == (
        "x was ended by SIGKILL without a result: out of memory"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("plain words", "plain words"),
        ('400: {"type":"x","message":"no such model"}', "400: no such model"),
        ('{"type":"error","error":{"type":"x","message":"no such model"}}', "no such model"),
        ('{"error":"no such model"}', "no such model"),
        ('{"error":{"message":null}}', '{"error":{"message":null}}'),
        ("a brace { in a sentence", "a brace { in a sentence"),
        ('{"message":["odd"]}', '{"message":["odd"]}'),
        ('{"error":' * 20_000, None),
    ],
)
def test_an_error_that_quotes_json_is_told_by_its_sentence(text: str, sentence: str | None) -> None:
    told = unwrap_error(text)

    assert len(told) <= 300
    assert sentence is None or told == sentence


def test_a_failure_without_a_reason_says_so() -> None:
    assert explain_failure("x", " ") == "x failed: it gave no reason."


@pytest.mark.parametrize(
    "error",
    [
        "unexpected status 401 Unauthorized: Incorrect API key provided",
        "No API key found for the selected model.",
        "Not logged in.",
        "Please log in again",
        "authentication_error: invalid x-api-key",
    ],
)
def test_a_missing_login_comes_with_the_way_in(error: str) -> None:
    assert with_login(error, "x login").endswith(". Log in with `x login`.")


@pytest.mark.parametrize("error", ["fake 400 error", "took 4010 ms", "no such model: login-7b"])
def test_other_errors_do_not_send_anybody_to_log_in(error: str) -> None:
    assert with_login(error, "x login") == error
