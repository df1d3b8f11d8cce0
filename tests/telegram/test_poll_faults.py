from __future__ import annotations

import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest

from takopi.core.errors import BadToken, Conflict, StoreFailed, Unreachable
from takopi.routing.authorize import Envelope
from takopi.telegram.times import Times
from tests.botapi.api import BotApi
from tests.botapi.bot import open_bot
from tests.botapi.faults import Closed, Cut, Html, Silence
from tests.botapi.refusal import Refused, conflict, too_many_requests
from tests.telegram.rig import (
    ADA,
    BOB,
    next_message,
    open_rig,
)


async def test_f5_a_conflict_is_told_once_and_waited_out(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    fault = api.fail(conflict("terminated by other getUpdates"), method="getUpdates", times=3)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck(3)
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"

        (trouble,) = rig.heard.troubles
        assert isinstance(trouble, Conflict)
        assert "stop the other one" in trouble.way_out


async def test_f5_a_second_poller_does_not_end_the_first(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig, open_bot(api) as other:
        await api.wait_for_request(lambda request: request.method == "getUpdates")
        await other.client.post("getUpdates", json={"timeout": 0})
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"


async def test_f7_a_silent_server_is_left_for_a_new_connection(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    fault = api.fail(Silence(), method="getUpdates")
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck()
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"

    first, second = api.sent("getUpdates")[:2]
    assert first.connection != second.connection
    assert second.at_s - first.at_s < 4


async def test_f7_silence_is_not_told_as_receiving(api: BotApi, tmp_path: Path) -> None:
    fault = api.fail(Silence(), method="getUpdates", times=2)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck(2)
        await rig.heard.wait_polls(3)

    known, *failures = rig.heard.failures[:3]
    assert known is None
    for failure in failures:
        assert isinstance(failure, Unreachable)
        assert failure.what == "no answer in time"


async def test_a_silent_server_at_the_start_is_waited_for(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    api.fail(Silence(), method="getMe")
    await ada.send(ada.chat, "hello")
    async with open_rig(api, tmp_path, poll=True) as rig:
        assert (await next_message(rig)).text == "hello"


@pytest.mark.parametrize(
    "trouble", [Html(), Html(404), Html(200), Cut(), Closed(), Refused(500, "oops")], ids=repr
)
async def test_f8_the_poller_outlives_gateways_and_broken_replies(
    api: BotApi, tmp_path: Path, trouble: Html | Cut | Closed | Refused
) -> None:
    ada = api.person(ADA)
    api.fail(trouble, method="getMe")
    fault = api.fail(trouble, method="getUpdates")
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck()
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"
        assert rig.heard.polls >= 3


async def test_f8_the_poller_outlives_a_server_that_is_down(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await api.wait_for_request(lambda request: request.method == "getUpdates")
        await api.go_down()
        await ada.send(ada.chat, "hello")
        await rig.heard.wait_polls(rig.heard.polls + 2)
        api.come_up()
        assert (await next_message(rig)).text == "hello"


async def test_429_is_waited_out_as_told(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    fault = api.fail(too_many_requests(1), method="getUpdates")
    async with open_rig(api, tmp_path, poll=True) as rig:
        await fault.struck()
        await ada.send(ada.chat, "hello")
        assert (await next_message(rig)).text == "hello"

    first, second = api.sent("getUpdates")[:2]
    assert second.at_s - first.at_s >= 0.99


@pytest.mark.parametrize("method", ["getMe", "getUpdates"])
@pytest.mark.parametrize("status", [401, 404])
async def test_a_token_that_telegram_does_not_know_ends_the_poller(
    api: BotApi, tmp_path: Path, method: str, status: int
) -> None:
    api.fail(Refused(status, "Unauthorized"), method=method)
    async with open_rig(api, tmp_path) as rig:
        with pytest.raises(BadToken) as caught:
            await rig.telegram.poll()

    assert caught.value.exit_code == 78
    assert api.token not in repr(caught.value) + caught.value.what


async def test_f15_a_full_disk_confirms_nothing_and_is_told_once(
    api: BotApi, tmp_path: Path
) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await api.wait_for_request(lambda request: request.method == "getUpdates")
        pages = await rig.db.write(fill_disk)
        await ada.send(ada.chat, "x" * 4000)
        tried = len(api.sent("getUpdates")) + 3
        await api.wait_for_request(lambda _request: len(api.sent("getUpdates")) == tried)
        assert len(api.updates.unconfirmed) == 1
        assert isinstance(rig.heard.troubles[0], StoreFailed)
        await rig.db.write(lambda conn: free_disk(conn, pages))
        assert (await next_message(rig)).text == "x" * 4000
        assert len(rig.heard.troubles) == 1


def fill_disk(conn: sqlite3.Connection) -> int:
    """Let SQLite find no room for another page."""
    pages = conn.execute("PRAGMA max_page_count").fetchone()[0]
    conn.execute(f"PRAGMA max_page_count = {conn.execute('PRAGMA page_count').fetchone()[0]}")
    return pages


def free_disk(conn: sqlite3.Connection, pages: int) -> None:
    conn.execute(f"PRAGMA max_page_count = {pages}")


async def test_f15_what_came_with_a_message_that_could_not_be_refused_arrives(
    api: BotApi, tmp_path: Path
) -> None:
    ada, bob = api.person(ADA), api.person(BOB, "Bob")
    await bob.send(bob.chat, "let in, and shut out at once")
    await ada.send(ada.chat, "hello")
    asked: list[Envelope] = []

    def allows(signed: Envelope) -> bool:
        if signed.sender_id == BOB:
            asked.append(signed)
        return signed.sender_id == ADA or len(asked) == 1

    async with open_rig(api, tmp_path, allows=allows) as rig:
        await rig.db.write(make_settling_large)
        rig.services.start_soon(rig.telegram.poll)
        await rig.heard.wait_polls(2)
        assert isinstance(rig.heard.failures[1], StoreFailed)
        await rig.db.write(lambda conn: conn.execute("DROP TRIGGER large"))
        assert (await next_message(rig)).text == "hello"


def make_settling_large(conn: sqlite3.Connection) -> None:
    """Let there be room for what comes in, and none for what becomes of it."""
    conn.execute("CREATE TABLE large (content)")
    conn.execute(
        "CREATE TRIGGER large BEFORE UPDATE ON inbox"
        " BEGIN INSERT INTO large VALUES (zeroblob(1000000)); END"
    )
    pages = conn.execute("PRAGMA page_count").fetchone()[0]
    conn.execute(f"PRAGMA max_page_count = {pages + 20}")


async def test_a_server_that_does_not_hold_requests_is_not_asked_without_end(
    api: BotApi, tmp_path: Path
) -> None:
    times = Times(poll_s=0, empty_s=0.3)
    async with open_rig(api, tmp_path, times=times, poll=True):
        await api.wait_for_request(lambda _request: len(api.sent("getUpdates")) == 3)

    asked = [request.at_s for request in api.sent("getUpdates")]
    assert all(later - earlier > 0.25 for earlier, later in pairwise(asked))
