from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio

from takopi.cli.setup_pairing import (
    TRIES,
    InGroup,
    Paired,
    Pairing,
    Wrong,
    greet,
    judge,
    new_pairing,
    pair,
)
from takopi.cli.setup_token import open_api
from takopi.core.errors import BadToken, TakopiError
from takopi.core.messages import IncomingMessage
from tests.botapi.api import BotApi
from tests.botapi.faults import Closed, Html
from tests.botapi.refusal import Refused, conflict
from tests.botapi.server import serve_botapi

ADA = 1001
MALLORY = 6666
GROUP = -1001234567890
NAME = "takopi_bot"
WITHIN_S = 60.0
PAIRING = Pairing("48219073")


def said(text: str, **facts: Any) -> IncomingMessage:
    facts = {"chat_id": ADA, "sender_id": ADA, "chat_type": "private", **facts}
    return IncomingMessage(
        transport="telegram",
        message_id=1,
        text=text,
        reply_to_message_id=None,
        reply_to_text=None,
        **facts,
    )


@pytest.mark.parametrize(
    "text", ["48219073", "4821 9073", " 4821-9073\n", "/start 48219073", f"/start@{NAME} 48219073"]
)
def test_code_is_taken_however_it_is_typed(text: str) -> None:
    assert judge(PAIRING, said(text), bot_name=NAME) == (PAIRING, Paired(ADA))


@pytest.mark.parametrize(
    "text", ["/start", "hello", "2024", "", "my code is 48219073", "+49 30 1234567890", "/start x"]
)
def test_what_is_no_code_is_no_try(text: str) -> None:
    assert judge(PAIRING, said(text), bot_name=NAME) == (PAIRING, None)


@pytest.mark.parametrize("text", ["48219074", "4821907", "482190733", "/start 00000000"])
def test_wrong_code_costs_a_try(text: str) -> None:
    assert judge(PAIRING, said(text), bot_name=NAME) == (Pairing("48219073", 2), Wrong())


def test_code_in_a_group_lets_nobody_in() -> None:
    for text in ("48219073", f"@{NAME} 48219073"):
        message = said(text, chat_id=GROUP, chat_type="supergroup")
        assert judge(PAIRING, message, bot_name=NAME)[1] == InGroup(GROUP, ADA)


def test_code_is_another_each_time() -> None:
    codes = {new_pairing().code for _ in range(20)}
    assert len(codes) == 20
    assert {len(code) for code in codes} == {8}


@dataclass
class Desk:
    """A pairing that goes on, and the people who write to its bot."""

    api: BotApi
    told: list[str] = field(default_factory=list[str])
    code: str = ""
    shown: trio.Event = field(default_factory=trio.Event)
    chat_id: int | None = None
    error: Exception | None = None

    def show(self, code: str) -> None:
        self.code = code
        self.shown.set()

    def tell(self, text: str) -> None:
        self.told.append(text)
        self.api.note_request()

    async def until_told(self, part: str) -> None:
        await self.api.wait_for_request(
            lambda _: any(part in text for text in self.told), within_s=WITHIN_S
        )

    async def write(self, text: str, *, by: int = ADA) -> None:
        person = self.api.person(by)
        await person.send(person.chat, text)

    @property
    def wrong(self) -> str:
        return f"{(int(self.code) + 1) % 10**8:08}"

    @property
    def words(self) -> str:
        assert isinstance(self.error, TakopiError)
        return f"{self.error.what}; {self.error.way_out}"


@asynccontextmanager
async def pairing(api: BotApi, *, life_s: float = 600.0) -> AsyncGenerator[Desk, None]:
    """A pairing during the block, which is over at its end."""
    desk = Desk(api)

    async def run() -> None:
        async with open_api(api.url, api.token) as client:
            me = await client.get_me()
            try:
                desk.chat_id = await pair(client, me, show=desk.show, tell=desk.tell, life_s=life_s)
            except TakopiError as error:
                desk.error = error

    with trio.fail_after(WITHIN_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            yield desk


@pytest.fixture
async def api() -> AsyncGenerator[BotApi, None]:
    async with serve_botapi() as api:
        api.person(ADA)
        api.person(MALLORY, "Mallory")
        yield api


async def test_chat_that_sends_the_code_is_paired(api: BotApi) -> None:
    async with pairing(api) as desk:
        await desk.shown.wait()
        await desk.write("/start")
        await desk.write(desk.code)
    assert desk.chat_id == ADA
    assert desk.told == []


async def test_of_two_senders_only_the_one_with_the_code_wins_and_the_other_gets_no_reply(
    api: BotApi,
) -> None:
    async with pairing(api) as desk:
        await desk.shown.wait()
        await desk.write("let me in", by=MALLORY)
        await desk.write(desk.wrong, by=MALLORY)
        await desk.write(desk.code)
        await desk.write(desk.code, by=MALLORY)
    assert desk.chat_id == ADA
    assert not api.sent("sendMessage")


async def test_first_sender_is_not_let_in_for_being_first(api: BotApi) -> None:
    async with pairing(api) as desk:
        await desk.shown.wait()
        await desk.write("/start", by=MALLORY)
        await desk.write("hello", by=MALLORY)
        await api.updates.wait_until_confirmed(api.updates.next_id - 1, within_s=WITHIN_S)
        assert desk.chat_id is None
        await desk.write(desk.code)
    assert desk.chat_id == ADA
    assert desk.told == []


async def test_three_wrong_codes_end_it_whoever_sends_them(api: BotApi) -> None:
    async with pairing(api) as desk:
        await desk.shown.wait()
        await desk.write(desk.wrong)
        await desk.until_told("2 more end this")
        await desk.write(desk.wrong, by=MALLORY)
        await desk.until_told("one more ends this")
        await desk.write(desk.wrong)
        await desk.write(desk.code)
    assert desk.chat_id is None
    assert "3 wrong codes came in" in desk.words
    assert len(desk.told) == TRIES - 1
    assert not api.sent("sendMessage")


async def test_code_is_void_after_its_time(api: BotApi) -> None:
    async with pairing(api, life_s=0.5) as desk:
        await desk.shown.wait()
    await desk.write(desk.code)
    assert desk.chat_id is None
    assert "no code came" in desk.words


async def test_what_was_sent_before_is_forgotten_and_costs_no_try(api: BotApi) -> None:
    ada = api.person(ADA)
    for _ in range(TRIES):
        await ada.send(ada.chat, "12345678")
    async with pairing(api) as desk:
        await desk.shown.wait()
        await desk.write(desk.code)
    assert desk.chat_id == ADA
    assert desk.told == []


async def test_code_is_not_left_for_the_daemon_but_what_comes_after_it_is(api: BotApi) -> None:
    async with pairing(api) as desk:
        await desk.shown.wait()
        poll = api.fail(Refused(502, "Bad Gateway"), method="getUpdates", times=1)
        await poll.struck(within_s=WITHIN_S)
        # They arrive in one batch, after the pause that the trouble brought.
        await desk.write(desk.code)
        await desk.write("fix the tests")
    assert desk.chat_id == ADA
    (left,) = api.updates.unconfirmed
    assert left["message"]["text"] == "fix the tests"


async def test_code_in_a_group_ends_it_and_says_what_a_group_needs(api: BotApi) -> None:
    group = api.supergroup(GROUP)
    async with pairing(api) as desk:
        await desk.shown.wait()
        await api.person(ADA).send(group, desk.code)
        await desk.write(desk.code, by=MALLORY)
    assert desk.chat_id is None
    assert f"takopi init --chat-id {GROUP} --allow {ADA}" in desk.words


async def test_code_edited_into_an_old_message_is_not_taken(api: BotApi) -> None:
    ada = api.person(ADA)
    old = await ada.send(ada.chat, "hello")
    async with pairing(api, life_s=1.0) as desk:
        await desk.shown.wait()
        await ada.edit(old, desk.code)
    assert desk.chat_id is None


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (Refused(429, "Too Many Requests", parameters={"retry_after": 1}), "left alone for 1 s"),
        (Closed(), "Telegram cannot be reached"),
        (Html(), "Telegram cannot be reached"),
    ],
    ids=["429", "closed", "html"],
)
async def test_trouble_is_told_once_and_waited_out(api: BotApi, trouble: Any, words: str) -> None:
    async with pairing(api) as desk:
        await desk.shown.wait()
        fault = api.fail(trouble, method="getUpdates", times=2)
        await fault.struck(2, within_s=WITHIN_S)
        await desk.write(desk.code)
    assert desk.chat_id == ADA
    (told,) = desk.told
    assert words in told


async def test_other_receiver_is_named_and_the_pairing_goes_on(api: BotApi) -> None:
    async with pairing(api) as desk:
        await desk.shown.wait()
        api.fail(conflict("terminated by other getUpdates request"), method="getUpdates")
        await desk.until_told("another program receives this bot's messages")
        assert "stop the other one" in desk.told[0]
        await desk.write(desk.code)
    assert desk.chat_id == ADA


async def test_token_that_is_revoked_meanwhile_ends_it(api: BotApi) -> None:
    async with pairing(api) as desk:
        await desk.shown.wait()
        api.fail(Refused(401, "Unauthorized"), method="getUpdates", times=None)
    assert isinstance(desk.error, BadToken)


async def test_greeting_that_cannot_be_sent_is_no_error(api: BotApi) -> None:
    async with open_api(api.url, api.token) as client:
        assert await greet(client, ADA, "hello")
        await api.person(ADA).block()
        assert not await greet(client, ADA, "hello")
