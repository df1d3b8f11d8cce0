from __future__ import annotations

import resource
from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused, TakopiError
from takopi.core.ids import Scope
from takopi.core.messages import IncomingMessage
from takopi.core.ports import Transport
from takopi.kit.http import open_http
from takopi.telegram.api import Api
from tests.botapi.api import BotApi
from tests.botapi.faults import Html
from tests.botapi.person import Attached
from tests.telegram.rig import ADA, GROUP, SCOPE, Rig, card, open_rig


async def test_telegram_is_a_transport(rig: Rig) -> None:
    port: Transport = rig.telegram

    assert port.name == "telegram"
    assert port.bot_name is None
    ref = await port.send(SCOPE, card("x" * port.max_units))
    assert ref.chat_id == ADA


async def test_a_text_of_full_length_still_fits_when_it_is_repeated(rig: Rig) -> None:
    rig.api.fail(Html(), method="sendMessage")
    await rig.say("x" * rig.telegram.max_units)
    await rig.telegram.outbox.flush()

    (message,) = rig.api.chat(ADA).bot_messages
    assert message.text == "(repeated)\n" + "x" * rig.telegram.max_units


async def test_a_topic_can_be_made_and_spoken_in(rig: Rig) -> None:
    forum = rig.api.supergroup(GROUP, forum=True)
    with trio.fail_after(20):
        topic = await rig.telegram.create_topic(Scope("telegram", GROUP), "n" * 200)
        await rig.telegram.send(topic, card("here"))

    (message,) = (m for m in forum.bot_messages if m.text)
    assert message.topic is not None
    assert (message.topic.id, message.topic.name) == (topic.topic_id, "n" * 127 + "…")


async def test_a_topic_is_refused_where_there_are_none(rig: Rig) -> None:
    rig.api.expect_rejection("forum")
    rig.api.supergroup(GROUP)
    with trio.fail_after(20), pytest.raises(Refused, match="topic was not made") as caught:
        await rig.telegram.create_topic(Scope("telegram", GROUP), "fix")

    assert "group with topics" in caught.value.way_out


async def test_a_file_of_a_person_can_be_fetched(api: BotApi, tmp_path: Path) -> None:
    ada = api.person(ADA)
    async with open_rig(api, tmp_path, poll=True) as rig:
        await ada.document(ada.chat, Attached("notes.txt", b"all of it", caption="read"))
        got = (await rig.next_arrival()).what
        assert isinstance(got, IncomingMessage)
        (document,) = got.documents
        with await rig.telegram.download(document.file_id) as file:
            assert file.read() == b"all of it"
        with pytest.raises(Refused, match="over 0 MB"):
            await rig.telegram.download(document.file_id, max_bytes=5)


async def test_a_file_that_is_gone_is_refused_with_a_way_out(rig: Rig) -> None:
    rig.api.expect_rejection("Not Found")
    stored = rig.api.world.store_file("x", b"x", content_type="text/plain")
    rig.api.on_reply = lambda _request: rig.api.world.files.clear()
    with trio.fail_after(20), pytest.raises(Refused, match="no longer has") as caught:
        await rig.telegram.download(stored.id)

    assert caught.value.way_out == "send it again"
    assert [request.method for request in rig.api.requests] == ["getFile", "download"]


async def test_a_disk_that_takes_only_a_part_of_a_file_is_told_of(rig: Rig) -> None:
    stored = rig.api.world.store_file("x", bytes(100), content_type="text/plain")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with trio.fail_after(20), pytest.raises(Refused, match="cannot keep the file"):
            await rig.telegram.download(stored.id)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_claimed_size_over_the_limit_is_not_even_fetched(rig: Rig) -> None:
    stored = rig.api.world.store_file("x", b"x", content_type="text/plain", size_bytes=2_000_000)
    with trio.fail_after(20), pytest.raises(Refused, match="over 1 MB"):
        await rig.telegram.download(stored.id, max_bytes=1024 * 1024)

    assert [request.method for request in rig.api.requests] == ["getFile"]


async def test_a_wrong_token_is_an_error_without_the_token(api: BotApi) -> None:
    api.expect_rejection("Unauthorized")
    wrong = "1:canary"
    async with open_http() as http:
        client = Api(http, url=api.url, token=wrong)
        with trio.fail_after(20), pytest.raises(TakopiError) as caught:
            await client.get_me()

    assert "canary" not in f"{caught.value!r} {caught.value.way_out} {client!r}"
