from __future__ import annotations

from contextvars import ContextVar

import pytest
import trio
import trio.testing

from takopi.kit.lanes import Lanes, Ticket

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


class Workshop:
    """Jobs that wait until they are let go, and a record of what began and ended."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.who: list[str] = []
        self.gates: dict[str, trio.Event] = {}
        self.moves: list[tuple[str, int]] = []

    async def run(self, job: str) -> None:
        self.began.append(job)
        self.who.append(WHO.get())
        gate = self.gates.setdefault(job, trio.Event())
        await gate.wait()

    def moved(self, ticket: Ticket[str, str]) -> None:
        self.moves.append((ticket.job, ticket.place))

    async def finish(self, job: str) -> None:
        self.gates.setdefault(job, trio.Event()).set()
        await trio.testing.wait_all_tasks_blocked()


async def test_jobs_of_a_lane_run_one_after_another_in_order(nursery: trio.Nursery) -> None:
    work = Workshop()
    lanes = Lanes[str, str](nursery, work.run, max_active=10)
    for job in ("a1", "a2", "a3"):
        lanes.put("a", job)
    await trio.testing.wait_all_tasks_blocked()
    assert work.began == ["a1"]
    await work.finish("a1")
    assert work.began == ["a1", "a2"]
    await work.finish("a2")
    await work.finish("a3")
    assert work.began == ["a1", "a2", "a3"]


async def test_lanes_run_in_parallel_up_to_the_cap_and_first_come_goes_first(
    nursery: trio.Nursery,
) -> None:
    work = Workshop()
    lanes = Lanes[str, str](nursery, work.run, max_active=2)
    for key, job in (("a", "a1"), ("a", "a2"), ("b", "b1"), ("c", "c1"), ("d", "d1")):
        lanes.put(key, job)
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(work.began) == ["a1", "b1"]
    await work.finish("b1")
    assert work.began[2:] == ["c1"]
    await work.finish("a1")
    assert work.began[2:] == ["c1", "a2"]
    for job in ("a2", "c1", "d1"):
        await work.finish(job)
    assert work.began[-1] == "d1"


async def test_job_runs_in_the_context_it_was_put_in_not_of_who_woke_the_lane(
    nursery: trio.Nursery,
) -> None:
    work = Workshop()
    lanes = Lanes[str, str](nursery, work.run, max_active=1)
    WHO.set("first")
    lanes.put("a", "a1")
    WHO.set("second")
    lanes.put("a", "a2")
    WHO.set("somebody else")
    await work.finish("a1")
    await work.finish("a2")
    assert work.who == ["first", "second"]


async def test_dropped_job_never_begins_and_those_behind_move_up(nursery: trio.Nursery) -> None:
    work = Workshop()
    lanes = Lanes[str, str](nursery, work.run, max_active=1, on_move=work.moved)
    running = lanes.put("a", "a1")
    second = lanes.put("a", "a2")
    third = lanes.put("a", "a3")
    assert (running.place, second.place, third.place) == (0, 1, 2)
    assert lanes.drop(second)
    assert not lanes.drop(second)
    assert not lanes.drop(running)
    assert third.place == 1
    assert work.moves == [("a2", 1), ("a3", 2), ("a3", 1)]
    await work.finish("a1")
    await work.finish("a3")
    assert work.began == ["a1", "a3"]


async def test_place_counts_the_lane_or_what_the_cap_holds_back(nursery: trio.Nursery) -> None:
    work = Workshop()
    lanes = Lanes[str, str](nursery, work.run, max_active=1, on_move=work.moved)
    lanes.put("a", "a1")
    places = [lanes.put(key, key + "2").place for key in ("b", "c", "a")]
    assert places == [1, 2, 1]
    assert lanes.waiting == 3
    for job in ("a1", "b2", "c2", "a2"):
        await work.finish(job)


async def test_resize_starts_what_fits_now_and_zero_holds_everything(
    nursery: trio.Nursery,
) -> None:
    work = Workshop()
    lanes = Lanes[str, str](nursery, work.run, max_active=0)
    lanes.put("a", "a1")
    lanes.put("b", "b1")
    await trio.testing.wait_all_tasks_blocked()
    assert work.began == []
    lanes.resize(2)
    await work.finish("a1")
    await work.finish("b1")
    assert sorted(work.began) == ["a1", "b1"]


async def test_cancelled_nursery_begins_nothing_that_waited() -> None:
    work = Workshop()
    async with trio.open_nursery() as nursery:
        lanes = Lanes[str, str](nursery, work.run, max_active=1)
        lanes.put("a", "a1")
        lanes.put("a", "a2")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert work.began == ["a1"]
    assert lanes.waiting == 1


async def test_failing_job_is_the_nurserys_affair_and_nothing_begins_after_it() -> None:
    began: list[str] = []

    async def fail(job: str) -> None:
        began.append(job)
        await trio.lowlevel.checkpoint()
        raise LookupError

    with pytest.RaisesGroup(LookupError):
        async with trio.open_nursery() as nursery:
            lanes = Lanes[str, str](nursery, fail, max_active=1)
            lanes.put("a", "a1")
            lanes.put("b", "b1")
    assert began == ["a1"]


async def test_lane_goes_on_as_another_with_everything_in_it(nursery: trio.Nursery) -> None:
    work = Workshop()
    lanes = Lanes[str, str](nursery, work.run, max_active=10)
    lanes.put("new", "n1")
    lanes.put("new", "n2")
    lanes.rekey("new", "thread")
    lanes.put("thread", "t1")
    lanes.put("new", "other")
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(work.began) == ["n1", "other"]
    await work.finish("n1")
    await work.finish("n2")
    await work.finish("t1")
    await work.finish("other")
    assert work.began[-2:] == ["n2", "t1"]


async def test_lane_that_becomes_a_busy_one_waits_behind_it(nursery: trio.Nursery) -> None:
    work = Workshop()
    lanes = Lanes[str, str](nursery, work.run, max_active=10)
    lanes.put("thread", "t1")
    lanes.put("new", "n1")
    lanes.put("new", "n2")
    lanes.rekey("new", "thread")
    await work.finish("n1")
    assert "n2" not in work.began
    await work.finish("t1")
    assert work.began[-1] == "n2"
    await work.finish("n2")
