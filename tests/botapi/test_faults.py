from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
import pytest
import trio
from trio.testing import MockClock

from tests.botapi.bot import Bot, open_bot, served
from tests.botapi.chats import Chat, Clock, User
from tests.botapi.faults import Closed, Cut, Held, Html, Late, Silence, Trouble
from tests.botapi.pace import Limits, Pace
from tests.botapi.refusal import Refused, conflict, too_many_requests

ADA = 1001
EVE = 666


async def _send(bot: Bot, chat_id: int = ADA) -> httpx2.Response:
    return await bot.client.post("sendMessage", json={"chat_id": chat_id, "text": "hello"})


@pytest.mark.parametrize("applied", [False, True], ids=["lost", "applied"])
@pytest.mark.parametrize("trouble", [Closed(), Cut()], ids=["closed", "cut"])
async def test_a_reply_that_breaks_off_says_nothing_about_its_effect(
    trouble: Trouble, applied: bool
) -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        api.fail(trouble, method="sendMessage", applied=applied)
        with pytest.raises(httpx2.TransportError):
            await _send(bot)
        assert len(chat.messages) == applied
        assert (await _send(bot)).status_code == 200


async def test_a_gateway_answers_with_a_page() -> None:
    async with served() as (api, bot):
        api.person(ADA)
        api.fail(Html(504))
        response = await _send(bot)
        assert response.status_code == 504
        assert response.headers["content-type"] == "text/html"
        assert api.violations == []


async def test_a_refusal_can_be_made_to_order() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        fault = api.fail(too_many_requests(40), method="sendMessage", times=2)
        for _ in range(2):
            response = await _send(bot)
            assert response.json() == {
                "ok": False,
                "error_code": 429,
                "description": "Too Many Requests: retry after 40",
                "parameters": {"retry_after": 40},
            }
        await fault.struck(2)
        assert (await _send(bot)).status_code == 200
        assert len(chat.messages) == 1


async def test_a_fault_of_one_chat_or_method_leaves_the_others_alone() -> None:
    async with served() as (api, bot):
        api.person(ADA)
        eve = api.person(EVE)
        api.fail(too_many_requests(40), chat=eve.chat, times=None)
        assert (await _send(bot, EVE)).status_code == 429
        assert (await _send(bot)).status_code == 200
        api.fail(Html(), method="editMessageText", times=None)
        assert (await _send(bot)).status_code == 200


async def test_a_fault_lasts_for_its_time_or_until_it_is_ended() -> None:
    async with served() as (api, bot):
        api.person(ADA)
        fault = api.fail(Html(), times=None)
        for _ in range(3):
            assert (await _send(bot)).status_code == 502
        fault.end()
        assert (await _send(bot)).status_code == 200
        api.fail(Html(), times=None, for_s=0)
        assert (await _send(bot)).status_code == 200


async def test_silence_lasts_until_the_client_leaves() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        fault = api.fail(Silence(), method="sendMessage")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send, bot)
            await fault.struck()
            nursery.cancel_scope.cancel()
        await api.wait_for_request(lambda request: request.left)
        assert chat.messages == []


async def test_silence_does_not_hold_up_the_end_of_the_test() -> None:
    async with served() as (api, _):
        fault = api.fail(Silence())
        port = int(api.url.rpartition(":")[2])
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(f"GET /bot{api.token}/getMe HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await fault.struck()
    await stream.aclose()


async def test_a_held_reply_takes_effect_first_and_comes_when_it_is_let_go() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        held = Held()
        fault = api.fail(held, method="sendMessage")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send, bot)
            await fault.struck()
            await chat.wait_for(lambda message: message.text == "hello")
            assert api.requests[0].status is None
            held.until.set()
        assert api.requests[0].status == 200


async def test_a_late_reply_comes_late() -> None:
    async with served() as (api, bot):
        api.person(ADA)
        api.fail(Late(0.2), method="sendMessage")
        await _send(bot)
        (request,) = api.requests
        assert request.replied_at_s is not None
        assert request.replied_at_s - request.at_s >= 0.2


async def test_a_poll_that_waits_meets_the_trouble_at_once() -> None:
    async with served() as (api, bot):
        replies: list[int] = []

        async def poll() -> None:
            replies.append((await bot.client.post("getUpdates", json={"timeout": 50})).status_code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await api.wait_for_request(lambda request: request.method == "getUpdates")
            fault = api.fail(conflict("terminated by other getUpdates"), method="getUpdates")
            # By itself the poll would end after 50 seconds.
            await fault.struck(within_s=30)
        assert replies == [409]


async def test_a_batch_whose_reply_was_lost_comes_again() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await ada.send(ada.chat, "hello")
        api.fail(Closed(), method="getUpdates", applied=True)
        with pytest.raises(httpx2.TransportError):
            await bot.client.post("getUpdates", json={"timeout": 50})
        assert len(await bot.call("getUpdates")) == 1


async def test_a_download_can_fail() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        message = await ada.voice(ada.chat)
        file = await bot.call("getFile", file_id=message.fields["voice"]["file_id"])
        api.fail(Html(), method="download")
        url = f"{api.url}/file/bot{api.token}/{file['file_path']}"
        assert (await bot.client.get(url)).status_code == 502
        assert (await bot.client.get(url)).content == b"OggS voice"


async def test_open_connections_can_be_dropped() -> None:
    async with served() as (api, bot):
        failures: list[Exception] = []

        async def poll() -> None:
            try:
                await bot.client.post("getUpdates", json={"timeout": 50})
            except httpx2.TransportError as error:
                failures.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await api.wait_for_request(lambda request: request.method == "getUpdates")
            api.drop_connections()
        assert failures
        assert await bot.call("getMe")


async def test_the_server_goes_down_and_comes_up_at_the_same_address() -> None:
    async with served() as (api, bot):
        await bot.call("getMe")
        for _ in range(2):
            await api.go_down()
            await api.go_down()
            with pytest.raises(httpx2.TransportError):
                await bot.call("getMe")
            async with open_bot(api) as other:
                with pytest.raises(httpx2.ConnectError):
                    await other.call("getMe")
            api.come_up()
            api.come_up()
            async with open_bot(api) as other:
                assert await other.call("getMe")


async def test_the_hook_is_called_after_each_reply_in_order() -> None:
    async with served() as (api, bot):
        seen: list[tuple[str, int | None]] = []
        api.on_reply = lambda request: seen.append((request.method, request.status))
        api.person(ADA)
        await bot.call("getMe")
        api.fail(Closed(), method="sendMessage")
        with pytest.raises(httpx2.TransportError):
            await _send(bot)
        assert seen == [("getMe", 200), ("sendMessage", None)]


async def test_the_server_outlives_a_client_that_is_killed_in_a_poll() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        script = "import sys, urllib.request as r; r.urlopen(r.Request(sys.argv[1], b'timeout=50'))"
        url = f"{api.url}/bot{api.token}/getUpdates"
        process = await trio.lowlevel.open_process([sys.executable, "-c", script, url])
        await api.wait_for_request(lambda request: request.method == "getUpdates")
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await api.wait_for_request(lambda request: request.left)
        await ada.send(ada.chat, "hello")
        assert len(await bot.call("getUpdates")) == 1
        assert [request.status for request in api.requests] == [None, 200]


def _check(pace: Pace, chat: Chat, method: str = "sendMessage") -> int:
    """The seconds to wait, 0 when it was let through."""
    try:
        pace.check(method, chat)
    except Refused as refused:
        return (refused.parameters or {})["retry_after"]
    return 0


def _chat(chat_id: int) -> Chat:
    return Chat(
        chat_id,
        "private" if chat_id > 0 else "supergroup",
        bot=User(1, "bot", is_bot=True),
        clock=Clock(),
    )


@pytest.mark.parametrize(("chat_id", "pause_s"), [(ADA, 1), (-1001, 3)])
async def test_a_chat_takes_a_burst_and_then_its_pace(
    chat_id: int, pause_s: int, mock_clock: MockClock
) -> None:
    await trio.lowlevel.checkpoint()
    pace, chat = Pace(Limits(burst=5)), _chat(chat_id)
    assert [_check(pace, chat) for _ in range(6)] == [0, 0, 0, 0, 0, pause_s]
    mock_clock.jump(pause_s)
    assert [_check(pace, chat, "editMessageText") for _ in range(2)] == [0, pause_s]
    assert _check(pace, chat, "answerCallbackQuery") == 0
    assert _check(pace, chat, "sendChatAction") == 0
    assert _check(pace, _chat(EVE)) == 0
    assert pace.refused == 2


async def test_all_chats_together_have_a_pace(mock_clock: MockClock) -> None:
    await trio.lowlevel.checkpoint()
    pace = Pace(Limits())
    assert [_check(pace, _chat(number)) for number in range(1, 32)] == [0] * 30 + [1]
    mock_clock.jump(1 / 30 + 0.001)
    assert _check(pace, _chat(99)) == 0


async def test_who_writes_too_fast_is_told_how_long_to_wait() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        pace = api.limit_pace(Limits(private_per_s=0.001, burst=2))
        assert [(await _send(bot)).status_code for _ in range(3)] == [200, 200, 429]
        assert (len(chat.messages), pace.refused) == (2, 1)
        assert api.violations == []


async def test_what_never_comes_is_said_so() -> None:
    async with served() as (api, _):
        fault = api.fail(Html())
        waits: list[Callable[[], Any]] = [
            partial(fault.struck, within_s=0),
            partial(api.wait_for_request, lambda _: True, within_s=0),
        ]
        for wait in waits:
            with pytest.raises(AssertionError, match="0 s"):
                await wait()
