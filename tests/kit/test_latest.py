from __future__ import annotations

import trio
import trio.testing

from takopi.kit.latest import Latest


async def test_slow_reader_gets_the_newest_value_only() -> None:
    latest: Latest[int] = Latest()
    for value in (1, 2, 3):
        latest.put(value)
    assert await anext(latest) == 3


async def test_reader_waits_for_the_next_value_and_never_sees_one_twice(
    nursery: trio.Nursery,
) -> None:
    latest: Latest[int] = Latest()
    seen: list[int] = []

    async def read() -> None:
        async for value in latest:
            seen.append(value)  # ruff: ignore[manual-list-comprehension] must survive a cancel

    nursery.start_soon(read)
    for value in (1, 2):
        latest.put(value)
        await trio.testing.wait_all_tasks_blocked()
    assert seen == [1, 2]
    latest.close()


async def test_value_put_before_the_close_is_still_read_and_one_after_it_is_not() -> None:
    latest: Latest[str] = Latest()
    latest.put("last")
    latest.close()
    latest.put("too late")
    assert [value async for value in latest] == ["last"]


async def test_none_is_a_value_like_any_other() -> None:
    latest: Latest[None] = Latest()
    latest.put(None)
    latest.close()
    assert [value async for value in latest] == [None]


async def test_cancelled_reader_leaves_the_value_for_the_next() -> None:
    latest: Latest[int] = Latest()
    with trio.move_on_after(0):
        await anext(latest)
    latest.put(1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(latest)
    assert await anext(latest) == 1
