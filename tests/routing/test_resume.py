from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.core.ids import ResumeToken
from takopi.routing.resume import find_resume, resumed_prompt, strip_resume_lines
from tests.routing.given import CLAUDE, CODEX, ENGINES


def test_resume_line_names_its_thread() -> None:
    text = "go on\n  `codex resume abc-1`  \r\nplease"
    assert find_resume(ENGINES, text) == ResumeToken(CODEX, "abc-1")


def test_space_around_a_resume_line_does_not_matter() -> None:
    gap = " " * 1000
    assert find_resume(ENGINES, f"{gap}codex resume abc{gap}") == ResumeToken(CODEX, "abc")


def test_text_without_a_resume_line_names_none() -> None:
    for text in ("", "please codex resume abc", "codex resume", "resume abc", "claude --resume -x"):
        assert find_resume(ENGINES, text) is None


@pytest.mark.parametrize("step", [1, -1])
def test_last_line_wins_whichever_engine_it_is_of(step: int) -> None:
    both = ENGINES[::step]
    text = "claude --resume one\ncodex resume two\nclaude --resume three\nbye"
    assert find_resume(both, text) == ResumeToken(CLAUDE, "three")
    assert find_resume(both, text + "\ncodex resume four") == ResumeToken(CODEX, "four")


def test_resume_lines_are_taken_out_and_the_rest_stays() -> None:
    text = "claude --resume one\n\n  fix\tthis \r\ncodex resume two\nand  that\n"
    assert strip_resume_lines(ENGINES, text) == "  fix\tthis \r\nand  that"


@given(st.text())
def test_text_without_resume_lines_stays_as_it_is(text: str) -> None:
    if find_resume(ENGINES, text) is None:
        assert strip_resume_lines(ENGINES, text) == text


@pytest.mark.parametrize("text", ["claude --resume one", "`claude --resume one`\n\n ", "", "  "])
def test_nothing_but_resume_lines_means_continue(text: str) -> None:
    assert resumed_prompt(ENGINES, text) == "continue"


def test_words_beside_a_resume_line_are_the_prompt() -> None:
    assert resumed_prompt(ENGINES, "claude --resume one\nfix it") == "fix it"


def test_long_lines_are_read_in_linear_time() -> None:
    begun = time.process_time()
    gap = " " * 200_000
    for text in (
        gap,
        f"claude --resume x{gap}y",
        "`" * 200_000,
        "claude " * 50_000,
        "a\n" * 100_000,
    ):
        assert find_resume(ENGINES, text) is None
    assert time.process_time() - begun < 2
