from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from takopi.kit.supervise import Backoff, GiveUp, keep_alive


class Wobbly(Exception):
    def __init__(self, retry_after_s: float = 0.0) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s


class Patient:
    """Work that fails with what it was given, one after another, and then ends well."""

    def __init__(self, *failures: Exception, lasts_s: float = 0.0) -> None:
        self.failures = list(failures)
        self.lasts_s = lasts_s
        self.pauses: list[float] = []

    async def work(self) -> None:
        await trio.sleep(self.lasts_s)
        if self.failures:
            raise self.failures.pop(0)

    def note(self, _error: Exception, pause_s: float) -> None:
        self.pauses.append(pause_s)


def steady() -> Backoff:
    return Backoff(first_s=1, cap_s=5, jitter=0)


async def test_pauses_double_up_to_the_cap(autojump_clock: trio.testing.MockClock) -> None:
    patient = Patient(*(Wobbly() for _ in range(5)))
    await keep_alive(patient.work, transient=(Wobbly,), backoff=steady(), on_retry=patient.note)
    assert patient.pauses == [1, 2, 4, 5, 5]
    assert trio.current_time() == pytest.approx(17)


async def test_good_work_in_between_begins_the_pauses_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    patient = Patient(*(Wobbly() for _ in range(3)), lasts_s=100)
    await keep_alive(patient.work, transient=(Wobbly,), backoff=steady(), on_retry=patient.note)
    assert patient.pauses == [1, 1, 1]


async def test_failure_that_knows_when_to_come_back_is_obeyed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    patient = Patient(Wobbly(retry_after_s=40))
    await keep_alive(patient.work, transient=(Wobbly,), backoff=steady(), on_retry=patient.note)
    assert patient.pauses == [40]


async def test_error_that_is_not_transient_is_raised_as_it_is() -> None:
    patient = Patient(LookupError("real"))
    with pytest.raises(LookupError, match="real"):
        await keep_alive(
            patient.work, transient=(Wobbly,), backoff=Backoff(), on_retry=patient.note
        )
    assert patient.pauses == []


async def test_too_many_failures_in_the_window_are_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    patient = Patient(*(Wobbly() for _ in range(9)))
    with pytest.raises(Wobbly):
        await keep_alive(
            patient.work,
            transient=(Wobbly,),
            backoff=steady(),
            on_retry=patient.note,
            give_up=GiveUp(failures=3, within_s=10),
        )
    assert patient.pauses == [1, 2]


async def test_as_many_failures_outside_the_window_are_not_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    patient = Patient(*(Wobbly() for _ in range(9)), lasts_s=6)
    await keep_alive(
        patient.work,
        transient=(Wobbly,),
        backoff=steady(),
        on_retry=patient.note,
        give_up=GiveUp(failures=3, within_s=10),
    )
    assert len(patient.pauses) == 9


def test_jitter_stays_within_its_share() -> None:
    backoff = Backoff(first_s=1, cap_s=1, jitter=0.2, random=random.Random(7))
    pauses = [backoff.pause_s() for _ in range(200)]
    assert min(pauses) >= 0.8
    assert max(pauses) <= 1.2
    assert len(set(pauses)) > 100
