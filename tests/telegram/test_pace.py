from __future__ import annotations

import pytest

from takopi.telegram.pace import Bucket, Window, chat_bucket


def times(bucket: Bucket | Window, count: int, *, start: float = 1000.0) -> list[float]:
    """When each of so many requests goes that are all wanted at once."""
    now = start
    went: list[float] = []
    for _ in range(count):
        now = bucket.ready_at(now)
        bucket.take(now)
        went.append(round(now - start, 3))
    return went


def test_a_person_hears_five_at_once_and_then_one_a_second() -> None:
    assert times(chat_bucket(7), 8) == [0, 0, 0, 0, 0, 1, 2, 3]


def test_a_group_hears_five_at_once_and_then_twenty_a_minute() -> None:
    assert times(chat_bucket(-7), 8) == [0, 0, 0, 0, 0, 3, 6, 9]


def test_nothing_waits_for_a_pace_that_is_not_due() -> None:
    bucket = chat_bucket(7)
    times(bucket, 5, start=1000)

    assert bucket.ready_at(1001) == 1001
    assert bucket.ready_at(5000) == 5000


def test_a_long_silence_saves_no_more_than_a_burst() -> None:
    bucket = chat_bucket(7)
    times(bucket, 5, start=1000)

    assert times(bucket, 7, start=9000) == [0, 0, 0, 0, 0, 1, 2]


def test_what_leaves_a_token_behind_waits_for_one_more() -> None:
    bucket = chat_bucket(7)
    times(bucket, 4, start=1000)

    assert bucket.ready_at(1000) == 1000
    assert bucket.ready_at(1000, spare=1) == pytest.approx(1001)


def test_thirty_at_once_and_never_more_in_any_second_overall() -> None:
    window = Window()
    went = times(window, 50) + [0.4 + at for at in times(window, 50, start=1000.4)]

    assert went[:30] == [0] * 30
    assert went[30] == 1
    assert max(sum(at <= t < at + 1 for t in went) for at in went) <= 30
