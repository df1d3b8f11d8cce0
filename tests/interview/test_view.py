from __future__ import annotations

import pytest

from takopi.interview.session import encode
from takopi.interview.view import card_of, progress_text, read_press
from tests.interview.given import answered, asking, question


@pytest.mark.parametrize(
    ("index", "total", "text"),
    [
        (1, 4, "Q1 of 4 ▓▓░░░░░░░░ 25%"),
        (2, 3, "Q2 of 3 ▓▓▓▓▓▓░░░░ 67%"),
        (4, 4, "Q4 of 4 ▓▓▓▓▓▓▓▓▓▓ 100%"),
    ],
)
def test_progress_says_how_far_it_is(index: int, total: int, text: str) -> None:
    assert progress_text(index, total) == text


def test_long_question_is_cut_in_the_message_and_whole_in_the_file() -> None:
    session = asking(question("x" * 500, "A"))
    assert "x" * 199 + "…" in card_of(session, max_units=4096).text.text
    assert b"x" * 500 in encode(session)


def test_short_options_share_a_row_and_long_ones_do_not() -> None:
    short = card_of(asking(question("Which?", "Express", "Fastify", "Hono")), max_units=4096)
    assert [len(row) for row in short.buttons] == [3, 2]
    long = card_of(asking(question("Which?", "Express", "HttpOnly cookies")), max_units=4096)
    assert [len(row) for row in long.buttons] == [1, 1, 2]


def test_summary_reads_as_specified() -> None:
    session = answered(("What framework?", "Express"), ("Token storage?", "HttpOnly cookies"))
    assert card_of(session, max_units=4096).text.text == (
        "✅ Plan Ready\n━━━━━━━━━━━━━━━━━━━━━━\nTask: add JWT authentication\n\n"
        "Q1: What framework? → Express\nQ2: Token storage? → HttpOnly cookies"
    )


def test_summary_of_long_answers_fits_into_a_message() -> None:
    session = answered(*[("q" * 300, "a" * 4000)] * 20)
    assert len(card_of(session, max_units=4096).text.text) <= 4096


@pytest.mark.parametrize("data", ["", "a", "a:0", "a:-1:0", "a:0:99", "eq:x", "a:01:0", "other"])
def test_forged_data_is_no_press(data: str) -> None:
    assert read_press(data) is None
