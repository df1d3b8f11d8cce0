"""What the server sends and takes, held against aiogram's models of the Bot API.

They take seconds to import, and every worker collects every test: so each test imports them itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.botapi.bot import served
from tests.botapi.person import Attached
from tests.botapi.schema import SHAPES

if TYPE_CHECKING:
    from pydantic import BaseModel

ADA = 1001
FORUM = -1002
# aiogram fills in what can have one value only, and knows newer replies, to what has no message.
OPTIONAL_THERE = {
    "Scope": {"type"},
    "ForceReply": {"force_reply"},
    "ReplyKeyboardRemove": {"remove_keyboard"},
    "ReplyParameters": {"message_id"},
}


def _unknown(value: object, at: str = "") -> Iterator[str]:
    """Fields of a model, at any depth, that the Bot API does not have."""
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        yield from (f"{at}.{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from _unknown(getattr(value, name), f"{at}.{name}")
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _unknown(one, at)


def _check(type_: Any, value: object) -> None:
    from pydantic import TypeAdapter

    assert list(_unknown(TypeAdapter(type_).validate_python(value))) == []


def _fields(model: type[BaseModel]) -> dict[str, bool]:
    """The names on the wire, and whether they are required."""
    return {field.alias or name: field.is_required() for name, field in model.model_fields.items()}


def _check_shape(model: type[BaseModel], shape: dict[str, str], *, but: set[str]) -> None:
    theirs = _fields(model)
    assert shape.keys() <= theirs.keys()
    ours = {name: type_.startswith("!") for name, type_ in shape.items() if name not in but}
    assert {name: theirs[name] for name in ours} == ours


@pytest.mark.parametrize("method", SHAPES["methods"])
def test_the_methods_have_the_fields_that_aiogram_gives_them(method: str) -> None:
    from aiogram import methods

    model = getattr(methods, method[0].upper() + method[1:])
    _check_shape(model, SHAPES["methods"][method], but=set())


@pytest.mark.parametrize(
    "type_", [name for name, shape in SHAPES["types"].items() if isinstance(shape, dict) and shape]
)
def test_the_types_have_the_fields_that_aiogram_gives_them(type_: str) -> None:
    from aiogram import types

    but = OPTIONAL_THERE.get("Scope" if "Scope" in type_ else type_, set[str]())
    _check_shape(getattr(types, type_), SHAPES["types"][type_], but=but)


async def test_every_update_is_one_that_aiogram_knows() -> None:
    from aiogram import types

    async with served() as (api, bot):
        ada = api.person(ADA, username="ada")
        forum, group, news = api.supergroup(FORUM, forum=True), api.group(-5), api.channel(-1003)
        markup = {"inline_keyboard": [[{"text": "Go", "callback_data": "x"}]]}
        sent = await bot.call("sendMessage", chat_id=ADA, text="card", reply_markup=markup)
        card = ada.chat.messages[0]
        topic = await ada.open_topic(forum, "Work")
        said = await ada.send(ada.chat, "/a @b_c https://d.e #f", reply_to=card, quote="ar")
        await ada.edit(said, "edited")
        await ada.send(forum, "in a topic", topic=topic)
        await ada.send(forum, "as the group", as_chat=forum)
        await ada.send(forum, "as a channel", as_chat=news)
        await ada.forward(said, group)
        await ada.join(group)
        await ada.voice(ada.chat)
        await ada.photo(ada.chat, Attached("p.jpg", b"j", "image/jpeg", caption="see"))
        await ada.album(ada.chat, [Attached("a", b"a"), Attached("b", b"b")])
        await ada.press(card, "Go")
        await ada.press(card, "Go", inaccessible=True)
        await ada.block()
        await ada.set_bot_status(forum, "left")
        await ada.set_bot_status(forum, "administrator")
        api.post(news, "news")
        api.migrate(group, -1004)
        batch = await bot.call("getUpdates")
        assert len(batch) == 20
        _check(list[types.Update], batch)
        _check(types.Message, sent)


async def test_every_reply_is_one_that_aiogram_knows() -> None:
    from aiogram import types

    async with served() as (api, bot):
        ada = api.person(ADA)
        api.supergroup(FORUM, forum=True)
        voice = await ada.voice(ada.chat)
        _check(types.User, await bot.call("getMe"))
        _check(types.ChatFullInfo, await bot.call("getChat", chat_id=FORUM))
        _check(types.WebhookInfo, await bot.call("getWebhookInfo"))
        _check(types.ForumTopic, await bot.call("createForumTopic", chat_id=FORUM, name="x"))
        _check(types.File, await bot.call("getFile", file_id=voice.fields["voice"]["file_id"]))
        files = {"document": ("a.md", b"a", "text/markdown")}
        response = await bot.client.post("sendDocument", data={"chat_id": str(ADA)}, files=files)
        _check(types.Message, response.json()["result"])
        await bot.call("setMyCommands", commands=[{"command": "a", "description": "b"}])
        _check(list[types.BotCommand], await bot.call("getMyCommands"))


async def test_what_aiogram_would_send_is_taken() -> None:
    from aiogram import methods, types

    async with served() as (api, bot):
        api.person(ADA)
        button = types.InlineKeyboardButton(text="Go", callback_data="x")
        call = methods.SendMessage(
            chat_id=ADA,
            text="hello",
            parse_mode=None,
            protect_content=None,
            link_preview_options=types.LinkPreviewOptions(is_disabled=True),
            entities=[types.MessageEntity(type="bold", offset=0, length=5)],
            reply_markup=types.InlineKeyboardMarkup(inline_keyboard=[[button]]),
            reply_parameters=types.ReplyParameters(message_id=9, allow_sending_without_reply=True),
        )
        body = call.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
        sent = await bot.call("sendMessage", **body)
        assert sent["entities"] == [{"type": "bold", "offset": 0, "length": 5}]
