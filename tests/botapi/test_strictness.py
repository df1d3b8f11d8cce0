from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.botapi.bot import served
from tests.botapi.refusal import Refused
from tests.botapi.server import Violated, serve_botapi
from tests.botapi.text import read_text, see_entities, units

ADA = 1001
SEND: dict[str, Any] = {"chat_id": ADA, "text": "hello"}
BUTTON = {"text": "Go", "callback_data": "x"}
CARD: dict[str, Any] = {**SEND, "reply_markup": {"inline_keyboard": [[BUTTON]]}}


def _mark(kind: str, offset: int, length: int) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length}


async def test_a_refusal_that_nobody_expected_fails_the_test() -> None:
    with pytest.raises(Violated, match="sendMessage: 400 Bad Request: chat not found"):
        async with served() as (_, bot):
            await bot.client.post("sendMessage", json={"chat_id": 5, "text": "x"})


async def test_a_refusal_that_was_expected_does_not() -> None:
    async with served() as (api, bot):
        api.expect_rejection("chat not found")
        await bot.client.post("sendMessage", json={"chat_id": 5, "text": "x"})
        assert api.violations == []
        assert api.requests[-1].error == "Bad Request: chat not found"


async def test_what_fails_in_the_test_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with serve_botapi():
            raise KeyError("the test's own")


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/bot123456789:wrong/getMe", 401, "Unauthorized"),
        ("/botnonsense/getMe", 404, "Not Found"),
        ("/", 404, "Not Found"),
        ("/bot{token}/getme", 404, "Not Found"),
        ("/bot{token}/sendDice", 404, "Not Found"),
        ("/file/bot{token}/documents/nothing", 404, "Not Found"),
        ("/file/bot123456789:wrong/documents/nothing", 401, "Unauthorized"),
    ],
)
async def test_a_wrong_address_is_refused(path: str, status: int, words: str) -> None:
    async with served() as (api, bot):
        api.expect_rejection(words)
        response = await bot.client.get(api.url + path.format(token=api.token))
        assert response.status_code == status
        assert response.json() == {"ok": False, "error_code": status, "description": words}


FORM = urlencode({
    "chat_id": ADA,
    "text": "12",
    "entities": json.dumps([_mark("bold", 0, 2)]),
    "disable_notification": "true",
})
JSON = json.dumps({
    "chat_id": ADA,
    "text": "12",
    "entities": [_mark("bold", 0, 2)],
    "disable_notification": True,
})


@pytest.mark.parametrize(
    ("query", "content_type", "body"),
    [
        ("", "application/json", JSON),
        ("", "application/x-www-form-urlencoded", FORM),
        (f"?{FORM}", "", ""),
    ],
    ids=["json", "form", "query"],
)
async def test_parameters_are_read_however_they_are_sent(
    query: str, content_type: str, body: str
) -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        headers = {"content-type": content_type} if content_type else {}
        await bot.client.post(f"sendMessage{query}", content=body, headers=headers)
        (message,) = chat.messages
        assert (message.text, message.silent) == ("12", True)
        assert message.entities == (_mark("bold", 0, 2),)


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        ("application/json", b"{", "can't parse JSON object"),
        ("application/json", b"[]", "object expected as JSON body"),
        ("application/json", b'{"text": "\\ud800"}', "can't parse JSON object"),
        ("text/plain", b"x", "content type text/plain is not read"),
        ("multipart/form-data", b"x", "boundary expected"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nx", "can't parse multipart body"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nx\r\n--b--", "can't parse multipart body"),
        ("application/x-www-form-urlencoded", b"\xff", "strings must be encoded in UTF-8"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(
    content_type: str, body: bytes, words: str
) -> None:
    async with served() as (api, bot):
        api.expect_rejection(words)
        headers = {"content-type": content_type}
        response = await bot.client.post("sendMessage", content=body, headers=headers)
        assert response.json()["description"] == f"Bad Request: {words}"


async def _upload(client: httpx2.AsyncClient, data: bytes, **fields: str) -> httpx2.Response:
    files = {"document": ("answer.md", data, "text/markdown")}
    return await client.post("sendDocument", data={"chat_id": str(ADA), **fields}, files=files)


async def test_a_document_arrives_and_can_be_fetched() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        data = b"# answer\r\n--x\r\n\x00\xff"
        await _upload(
            bot.client,
            data,
            caption="the whole",
            reply_markup=json.dumps({"inline_keyboard": [[BUTTON]]}),
        )
        (message,) = chat.messages
        assert (message.text, message.labels) == ("the whole", ("Go",))
        assert message.fields["document"]["file_name"] == "answer.md"
        file = await bot.call("getFile", file_id=message.fields["document"]["file_id"])
        url = f"{api.url}/file/bot{api.token}/{file['file_path']}"
        assert (await bot.client.get(url)).content == data


@pytest.mark.parametrize(
    ("data", "caption", "words"),
    [
        (b"", "", "Bad Request: file must be non-empty"),
        (b"x", "x" * 1025, "Bad Request: message caption is too long"),
        (b"x" * (50 * 1024 * 1024 + 1), "", "Request Entity Too Large"),
    ],
    ids=["empty", "long caption", "too big"],
)
async def test_a_document_that_telegram_would_not_take_is_refused(
    data: bytes, caption: str, words: str
) -> None:
    async with served() as (api, bot):
        api.person(ADA)
        api.expect_rejection(words)
        response = await _upload(bot.client, data, caption=caption)
        assert response.json()["description"] == words


async def test_a_file_over_20_mb_cannot_be_fetched() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        message = await ada.voice(ada.chat, size_bytes=20 * 1024 * 1024 + 1)
        words = await bot.refusal("getFile", file_id=message.fields["voice"]["file_id"])
        assert words == "Bad Request: file is too big"


async def test_an_edit_replaces_text_and_buttons_and_keeps_history() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        sent = await bot.call("sendMessage", **CARD)
        await bot.call("editMessageText", chat_id=ADA, message_id=sent["message_id"], text="two")
        (message,) = chat.messages
        assert (message.text, message.labels) == ("two", ())
        assert [(one.text, one.buttons) for one in message.versions] == [
            ("hello", (("Go",),)),
            ("two", ()),
        ]


async def test_an_edit_of_buttons_leaves_the_text() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        sent = await bot.call("sendMessage", **CARD)
        await bot.call("editMessageReplyMarkup", chat_id=ADA, message_id=sent["message_id"])
        assert (chat.messages[0].text, chat.messages[0].labels) == ("hello", ())


async def test_a_document_has_no_text_to_edit_but_a_caption() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        await _upload(bot.client, b"x", caption="one")
        target = {"chat_id": ADA, "message_id": 1}
        words = await bot.refusal("editMessageText", **target, text="x")
        assert words == "Bad Request: there is no text in the message to edit"
        await bot.call("editMessageCaption", **target, caption="two")
        assert chat.messages[0].text == "two"


async def test_a_deleted_message_is_out_of_sight_and_cannot_be_edited() -> None:
    async with served() as (api, bot):
        chat = api.person(ADA).chat
        await bot.call("sendMessage", **SEND)
        await bot.call("deleteMessage", chat_id=ADA, message_id=1)
        assert chat.messages == []
        assert [message.text for message in chat.everything] == ["hello"]
        words = await bot.refusal("editMessageText", chat_id=ADA, message_id=1, text="x")
        assert words == "Bad Request: message to edit not found"


async def test_a_message_of_two_days_cannot_be_deleted() -> None:
    async with served() as (api, bot):
        api.person(ADA)
        await bot.call("sendMessage", **SEND)
        api.pass_time(48 * 3600 + 5)
        words = await bot.refusal("deleteMessage", chat_id=ADA, message_id=1)
        assert words == "Bad Request: message can't be deleted for everyone"


async def test_a_member_cannot_delete_what_others_wrote() -> None:
    async with served() as (api, bot):
        ada, team = api.person(ADA), api.supergroup(-1001)
        team.bot_status = "member"
        message = await ada.send(team, "mine")
        words = await bot.refusal("deleteMessage", chat_id=-1001, message_id=message.id)
        assert words == "Bad Request: message can't be deleted"


@pytest.mark.parametrize("late_s", [0, 61])
async def test_a_press_is_answered_once_and_in_time(late_s: int) -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await bot.call("sendMessage", **CARD)
        press = await ada.press(ada.chat.messages[0], "Go")
        if not late_s:
            await bot.call("answerCallbackQuery", callback_query_id=press.id, text="ok")
            assert (await press.answered()).text == "ok"
        api.pass_time(late_s)
        words = await bot.refusal("answerCallbackQuery", callback_query_id=press.id)
        assert "query is too old and response timeout expired" in words


async def test_an_answer_to_a_press_is_short() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await bot.call("sendMessage", **CARD)
        press = await ada.press(ada.chat.messages[0], "Go")
        words = await bot.refusal("answerCallbackQuery", callback_query_id=press.id, text="x" * 201)
        assert words == "Bad Request: MESSAGE_TOO_LONG"


async def test_commands_are_kept_by_scope() -> None:
    async with served() as (_, bot):
        commands = [{"command": "run", "description": "Run"}]
        await bot.call("setMyCommands", commands=commands)
        assert await bot.call("getMyCommands") == commands
        scope = {"type": "all_private_chats"}
        assert await bot.call("getMyCommands", scope=scope) == []
        await bot.call("deleteMyCommands")
        assert await bot.call("getMyCommands") == []


def test_text_is_cleaned_and_trimmed_as_telegram_does() -> None:
    kept = read_text(" \r\n a\tb\u202ec \n", [_mark("bold", 4, 5)])
    assert (kept.text, kept.entities) == ("a bc", (_mark("bold", 0, 4),))


def test_blanks_before_a_mark_go_and_marked_blanks_stay() -> None:
    kept = read_text("  x  y ", [_mark("pre", 1, 4), _mark("bold", 6, 1)])
    assert (kept.text, kept.entities) == (" x  y", (_mark("pre", 0, 4),))


def test_marks_after_the_hundredth_are_lost() -> None:
    marks = [_mark("bold", offset, 1) for offset in range(101)]
    assert len(read_text("x" * 101, marks).entities) == 100


def test_a_client_marks_commands_mentions_and_links() -> None:
    text = "/run@bot_x 😀 @ada https://a.b/c?d. #tag a@b.c x/y //z"
    seen = [(one["type"], one["offset"], one["length"]) for one in see_entities(text)]
    assert seen == [
        ("bot_command", 0, 10),
        ("mention", 14, 4),
        ("url", 19, 15),
        ("hashtag", 36, 4),
    ]


@given(
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), max_size=4),
)
def test_whatever_is_kept_is_in_range_and_is_kept_again(
    text: str, spans: list[tuple[int, int]]
) -> None:
    marks = [_mark("bold", offset, length) for offset, length in spans]
    try:
        kept = read_text(text, marks)
    except Refused:
        return
    size = units(kept.text)
    assert all(0 <= one["offset"] < one["offset"] + one["length"] <= size for one in kept.entities)
    assert read_text(kept.text, kept.entities) == kept
