import pytest

from takopi.present.numbers import ago, cost, count, duration, size
from takopi.present.wording import one_line


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0s"),
        (0.9, "0s"),
        (12, "12s"),
        (59.99, "59s"),
        (60, "1m 00s"),
        (185, "3m 05s"),
        (3599, "59m 59s"),
        (3720, "1h 02m"),
        (86_399, "23h 59m"),
        (86_400 + 3 * 3600, "1d 03h"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (340, "340"),
        (999, "999"),
        (1000, "1.0k"),
        (1234, "1.2k"),
        (9949, "9.9k"),
        (9950, "10k"),
        (12_345, "12k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (3_400_000, "3.4M"),
        (10**18, "1000000T"),
    ],
)
def test_counts(number: int, said: str) -> None:
    assert count(number) == said


@pytest.mark.parametrize(
    ("number", "said"), [(512, "512 B"), (1200, "1.2 kB"), (34_000_000, "34 MB")]
)
def test_sizes(number: int, said: str) -> None:
    assert size(number) == said


@pytest.mark.parametrize(
    ("usd", "said"), [(0.0, "$0.00"), (0.001, "<$0.01"), (0.04, "$0.04"), (12.345, "$12.35")]
)
def test_costs(usd: float, said: str) -> None:
    assert cost(usd) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "just now"), (5, "just now"), (300, "5m ago"), (7200, "2h ago"), (200_000, "2d ago")],
)
def test_times_ago(seconds: float, said: str) -> None:
    assert ago(seconds) == said


def test_a_line_is_one_line_and_shows_that_it_was_cut() -> None:
    assert one_line("  a\n\tb\x1b c ", 80) == "a b c"
    assert one_line("word " * 100, 20) == "word word word word…"
    assert one_line(" " * 1000 + "late", 20) == "late"
    assert one_line("x" * 10_000_000, 5) == "xxxx…"
