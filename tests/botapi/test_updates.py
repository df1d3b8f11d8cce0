from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.botapi.bot import Bot, open_bot, served
from tests.botapi.chats import Clock
from tests.botapi.person import Person
from tests.botapi.refusal import Refused
from tests.botapi.updates import Updates

ADA = 1001


async def _say(person: Person, *texts: str) -> None:
    for text in texts:
        await person.send(person.chat, text)


async def _poll(bot: Bot, **parameters: Any) -> list[str]:
    """The texts of a batch, without waiting unless told to."""
    return [one["message"]["text"] for one in await bot.call("getUpdates", **parameters)]


async def test_updates_come_again_until_an_offset_confirms_them() -> None:
    async with served() as (api, bot):
        await _say(api.person(ADA), "one", "two", "three")
        first, second, third = await bot.call("getUpdates")
        assert [second["update_id"], third["update_id"]] == [
            first["update_id"] + 1,
            first["update_id"] + 2,
        ]
        assert await _poll(bot) == ["one", "two", "three"]
        assert await _poll(bot, offset=second["update_id"]) == ["two", "three"]
        assert await _poll(bot) == ["two", "three"]
        assert await _poll(bot, offset=third["update_id"] + 1) == []
        assert api.updates.unconfirmed == []


async def test_a_negative_offset_forgets_all_but_the_last() -> None:
    async with served() as (api, bot):
        await _say(api.person(ADA), "one", "two", "three")
        assert await _poll(bot, offset=-2) == ["two", "three"]
        assert await _poll(bot) == ["two", "three"]


async def test_a_batch_is_no_longer_than_its_limit() -> None:
    async with served() as (api, bot):
        await _say(api.person(ADA), *(str(number) for number in range(101)))
        assert await _poll(bot, limit=2) == ["0", "1"]
        assert len(await _poll(bot)) == 100


async def test_a_poll_waits_for_the_first_update() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        texts: list[str] = []

        async def poll() -> None:
            texts.extend(await _poll(bot, timeout=50))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await api.wait_for_request(lambda request: request.method == "getUpdates")
            await _say(ada, "hello")
        assert texts == ["hello"]


async def test_a_poll_without_updates_ends_with_its_timeout() -> None:
    async with served() as (_, bot):
        start_s = trio.current_time()
        assert await _poll(bot, timeout=1) == []
        assert trio.current_time() - start_s >= 1


async def test_kinds_that_are_not_allowed_do_not_come_even_later() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        assert await bot.call("getUpdates", allowed_updates=["my_chat_member"]) == []
        await _say(ada, "unseen")
        await ada.block()
        await ada.unblock()
        batch = await bot.call("getUpdates", allowed_updates=[])
        assert [sorted(update) for update in batch] == [["my_chat_member", "update_id"]] * 2
        await _say(ada, "seen")
        assert len(await bot.call("getUpdates")) == 3


CONFLICT = (
    "Conflict: terminated by other getUpdates request; "
    "make sure that only one bot instance is running"
)


async def test_a_second_poller_ends_the_first_with_a_conflict() -> None:
    async with served() as (api, bot), open_bot(api) as other:
        replies: list[Any] = []

        async def poll() -> None:
            replies.append((await bot.client.post("getUpdates", json={"timeout": 50})).json())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await api.wait_for_request(lambda request: request.method == "getUpdates")
            assert await other.call("getUpdates") == []
        assert replies == [{"ok": False, "error_code": 409, "description": CONFLICT}]
        assert api.violations == []


async def test_conflicts_are_told_three_seconds_apart(autojump_clock: MockClock) -> None:
    updates = Updates(Clock())
    told_s: list[float] = []

    async def poll() -> None:
        with suppress(Refused):
            await updates.poll(timeout_s=50)
        told_s.append(trio.current_time())

    start_s = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(poll)
            await wait_all_tasks_blocked()
    assert [round(at_s - start_s) for at_s in told_s] == [0, 3, 50]


async def test_updates_are_kept_for_a_day() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await _say(ada, "old")
        api.pass_time(24 * 3600 + 1)
        await _say(ada, "new")
        assert await _poll(bot) == ["new"]


async def test_the_last_batch_can_be_repeated_after_it_was_confirmed() -> None:
    async with served() as (api, bot):
        await _say(api.person(ADA), "one")
        (update,) = await bot.call("getUpdates")
        api.repeat_last_batch()
        offset = update["update_id"] + 1
        assert await bot.call("getUpdates", offset=offset) == [update]
        assert await bot.call("getUpdates", offset=offset) == []


async def test_any_shape_of_update_can_be_queued() -> None:
    async with served() as (api, bot):
        update_id = api.update({"something_new": {"x": 1}})
        assert await bot.call("getUpdates") == [{"update_id": update_id, "something_new": {"x": 1}}]


async def test_a_test_can_wait_until_an_update_is_confirmed() -> None:
    async with served() as (api, bot), trio.open_nursery() as nursery:
        update_id = api.update({})
        nursery.start_soon(api.updates.wait_until_confirmed, update_id)
        await bot.call("getUpdates", offset=update_id)
        with pytest.raises(AssertionError, match="was not confirmed"):
            await api.updates.wait_until_confirmed(update_id, within_s=0)
        await bot.call("getUpdates", offset=update_id + 1)
