from __future__ import annotations

from typing import Any

import pytest

from tests.botapi.bot import served

ADA = 1001
FORUM = -1002
SEND: dict[str, Any] = {"chat_id": ADA, "text": "hello"}


def _marked(text: str, *entities: dict[str, Any]) -> dict[str, Any]:
    return {"chat_id": ADA, "text": text, "entities": list(entities)}


def _mark(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


def _keyboard(*buttons: dict[str, Any]) -> dict[str, Any]:
    return {**SEND, "reply_markup": {"inline_keyboard": [[button] for button in buttons]}}


BUTTON = {"text": "Go", "callback_data": "x"}
TOO_LATE = "entity beginning at UTF-16 offset {} ends after the end of the text at UTF-16 offset {}"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("sendMessage", {**SEND, "txt": "x"}, 'unknown field "txt"'),
    ("sendMessage", {"text": "hello"}, "chat_id is empty"),
    ("sendMessage", {"chat_id": ADA}, "text is empty"),
    ("sendMessage", {**SEND, "text": 5}, 'field "text" must be of type String'),
    ("sendMessage", {**SEND, "chat_id": True}, 'field "chat_id" must be of type Integer|String'),
    (
        "sendMessage",
        {**SEND, "message_thread_id": "5"},
        'field "message_thread_id" must be of type',
    ),
    ("sendMessage", {**SEND, "disable_notification": 1}, "must be of type Boolean"),
    ("sendMessage", {**SEND, "disable_notification": None}, "must be of type Boolean"),
    ("sendMessage", {**SEND, "entities": {}}, 'field "entities" must be of type Array'),
    (
        "sendMessage",
        {**SEND, "reply_parameters": {}},
        'can\'t find field "reply_parameters.message_id"',
    ),
    ("sendMessage", {**SEND, "reply_parameters": {"id": 1}}, 'unknown field "reply_parameters.id"'),
    ("sendMessage", {**SEND, "link_preview_options": {"is_disabled": "yes"}}, "type Boolean"),
    ("sendMessage", {**SEND, "link_preview_options": {"url": "x"}}, "WEBPAGE_URL_INVALID"),
    ("sendMessage", {**SEND, "reply_markup": {"inline_keyboard": "bad"}}, "must be of type Array"),
    ("sendMessage", {**SEND, "chat_id": 999}, "chat not found"),
    ("sendMessage", {**SEND, "chat_id": "@nobody"}, "chat not found"),
    ("sendMessage", {**SEND, "text": ""}, "message text is empty"),
    ("sendMessage", {**SEND, "text": " \n\t "}, "text must be non-empty"),
    ("sendMessage", {**SEND, "text": "x" * 4097}, "message is too long"),
    ("sendMessage", {**SEND, "text": "😀" * 2049}, "message is too long"),
    ("sendMessage", {**SEND, "parse_mode": "HTML"}, "parse_mode is not served here"),
    (
        "sendMessage",
        {**SEND, "reply_parameters": {"message_id": 9}},
        "message to be replied not found",
    ),
    (
        "sendMessage",
        {**SEND, "reply_parameters": {"message_id": 1, "chat_id": FORUM}},
        "replies to other chats are not served here",
    ),
    (
        "sendMessage",
        {**SEND, "reply_parameters": {"message_id": 1, "quote": "bye"}},
        "QUOTE_TEXT_INVALID",
    ),
    ("sendMessage", {**SEND, "message_thread_id": 9}, "message thread not found"),
    (
        "sendMessage",
        _marked("hello", _mark("bald", 0, 1)),
        "can't parse MessageEntity: Unsupported",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("bold", -1, 1)),
        "receive an entity with incorrect offset -1",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("bold", 0, 0)),
        "receive an entity with incorrect length 0",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("bold", 9, 1)),
        "entity begins after the end of the text",
    ),
    ("sendMessage", _marked("hello", _mark("bold", 1, 5)), TOO_LATE.format(1, 6)),
    (
        "sendMessage",
        _marked("a😀", _mark("bold", 2, 1)),
        "entity begins in a middle of a UTF-16 symbol at byte offset 5",
    ),
    (
        "sendMessage",
        _marked("a😀b", _mark("bold", 0, 2)),
        "ends in a middle of a UTF-16 symbol at byte offset 5",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("bold", 0, 3), _mark("italic", 2, 3)),
        TOO_LATE.format(2, 5),
    ),
    (
        "sendMessage",
        _marked("hello", _mark("code", 0, 5), _mark("bold", 1, 2)),
        "bold and code can't be nested",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("bold", 0, 5), _mark("code", 1, 2)),
        "code and bold can't be nested",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("blockquote", 0, 5), _mark("blockquote", 1, 2)),
        "blockquotes can't be nested",
    ),
    (
        "sendMessage",
        _marked(
            "hello",
            _mark("text_link", 0, 5, url="https://a.b"),
            _mark("text_link", 0, 5, url="https://c.d"),
        ),
        "links can't be nested",
    ),
    ("sendMessage", _marked("hello", _mark("text_link", 0, 5)), 'Can\'t find field "url"'),
    (
        "sendMessage",
        _marked("hello", _mark("text_link", 0, 5, url="")),
        "entity URL '' is invalid: URL host is empty",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("text_link", 0, 5, url="docs/a.md")),
        "entity URL 'docs/a.md' is invalid: Wrong HTTP URL",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("text_link", 0, 5, url="ftp://a")),
        "Unsupported URL protocol",
    ),
    (
        "sendMessage",
        _marked("hello", _mark("bold", 0, 5, language="py")),
        'field "language" is for pre only',
    ),
    (
        "sendMessage",
        _keyboard({"text": "", "callback_data": "x"}),
        "inline keyboard button text must be non-empty",
    ),
    (
        "sendMessage",
        _keyboard({"callback_data": "x"}),
        'can\'t find field "reply_markup.inline_keyboard[0][0].text"',
    ),
    ("sendMessage", _keyboard({"text": "Go"}), "Text buttons are unallowed in the inline keyboard"),
    ("sendMessage", _keyboard({"text": "Go", "callback_data": ""}), "Text buttons are unallowed"),
    (
        "sendMessage",
        _keyboard({**BUTTON, "url": "https://a.b"}),
        "more than one action: url, callback_data",
    ),
    ("sendMessage", _keyboard({"text": "Go", "callback_data": "é" * 33}), "BUTTON_DATA_INVALID"),
    (
        "sendMessage",
        _keyboard({"text": "Go", "url": "here"}),
        "inline keyboard button URL 'here' is invalid: Wrong HTTP URL",
    ),
    (
        "sendMessage",
        _keyboard({"text": "Go", "copy_text": {"text": ""}}),
        "BUTTON_COPY_TEXT_INVALID",
    ),
    ("sendMessage", _keyboard({"text": "Go", "pay": True}), "BUTTON_TYPE_INVALID"),
    ("sendMessage", _keyboard(*[BUTTON] * 101), "REPLY_MARKUP_TOO_LONG"),
    (
        "sendMessage",
        {**SEND, "reply_markup": {"inline_keyboard": [[BUTTON] * 9]}},
        "row of buttons is longer than 8",
    ),
    (
        "sendMessage",
        {**SEND, "reply_markup": {"remove_keyboard": True}},
        "inline keyboard expected",
    ),
    (
        "editMessageText",
        {"chat_id": ADA, "message_id": 9, "text": "x"},
        "message to edit not found",
    ),
    ("editMessageText", {"chat_id": ADA, "text": "x"}, "message identifier is not specified"),
    ("editMessageText", {"message_id": 2, "text": "x"}, "chat_id is empty"),
    (
        "editMessageText",
        {"chat_id": ADA, "message_id": 2, "rich_message": {"html": "x"}},
        "rich_message is not served here",
    ),
    ("editMessageText", {"chat_id": ADA, "message_id": 1, "text": "x"}, "message can't be edited"),
    ("editMessageText", {"chat_id": ADA, "message_id": 2, "text": "x" * 4097}, "MESSAGE_TOO_LONG"),
    (
        "editMessageText",
        {"chat_id": ADA, "message_id": 2, "text": "card \n"},
        (
            "message is not modified: specified new message content and reply markup are exactly "
            "the same as a current content and reply markup of the message"
        ),
    ),
    ("editMessageReplyMarkup", {"chat_id": ADA, "message_id": 2}, "message is not modified"),
    (
        "editMessageCaption",
        {"chat_id": ADA, "message_id": 2, "caption": "x"},
        "there is no caption in the message to edit",
    ),
    ("deleteMessage", {"chat_id": ADA, "message_id": 9}, "message to delete not found"),
    (
        "deleteMessages",
        {"chat_id": ADA, "message_ids": []},
        "too many message identifiers specified",
    ),
    (
        "answerCallbackQuery",
        {"callback_query_id": "1"},
        "query is too old and response timeout expired or query ID is invalid",
    ),
    ("sendChatAction", {"chat_id": ADA, "action": "dancing"}, "wrong parameter action in request"),
    (
        "sendDocument",
        {"chat_id": ADA, "document": "nothing"},
        "wrong file identifier/HTTP URL specified",
    ),
    ("getFile", {"file_id": "nothing"}, "invalid file_id"),
    (
        "setMyCommands",
        {"commands": [{"command": "Run", "description": "x"}]},
        "BOT_COMMAND_INVALID",
    ),
    (
        "setMyCommands",
        {"commands": [{"command": "a" * 33, "description": "x"}]},
        "BOT_COMMAND_INVALID",
    ),
    (
        "setMyCommands",
        {"commands": [{"command": "run", "description": ""}]},
        "BOT_COMMAND_DESCRIPTION_INVALID",
    ),
    (
        "setMyCommands",
        {"commands": [{"command": "run", "description": "x" * 257}]},
        "BOT_COMMAND_DESCRIPTION_INVALID",
    ),
    (
        "setMyCommands",
        {"commands": [{"command": f"c{n}", "description": "x"} for n in range(101)]},
        "BOT_COMMANDS_TOO_MUCH",
    ),
    (
        "setMyCommands",
        {"commands": [{"command": "run", "description": "x"}] * 2},
        "a command is there twice",
    ),
    ("setMyCommands", {"commands": [], "scope": {"type": "all"}}, 'unknown "scope.type"'),
    (
        "setMyCommands",
        {"commands": [], "scope": {"type": "chat"}},
        'can\'t find field "scope.chat_id"',
    ),
    ("createForumTopic", {"chat_id": ADA, "name": "x"}, "the chat is not a forum"),
    ("createForumTopic", {"chat_id": FORUM, "name": " "}, "TOPIC_TITLE_EMPTY"),
    ("createForumTopic", {"chat_id": FORUM, "name": "x" * 129}, "TOPIC_TITLE_TOO_LONG"),
    ("createForumTopic", {"chat_id": FORUM, "name": "x", "icon_color": 1}, "invalid icon color"),
    ("editForumTopic", {"chat_id": FORUM, "message_thread_id": 9, "name": "x"}, "TOPIC_ID_INVALID"),
    ("getUpdates", {"limit": 101}, "limit must be between 1 and 100"),
    ("getUpdates", {"timeout": -1}, "timeout must not be negative"),
    ("getUpdates", {"allowed_updates": ["mesage"]}, "allowed_updates has unknown kinds: mesage"),
]


@pytest.mark.parametrize(
    ("method", "parameters", "words"), REFUSED, ids=[f"{row[0]}-{row[2][:40]}" for row in REFUSED]
)
async def test_what_telegram_would_not_take_is_refused(
    method: str, parameters: dict[str, Any], words: str
) -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        api.supergroup(FORUM, forum=True)
        await ada.send(ada.chat, "hi")
        await bot.call("sendMessage", chat_id=ADA, text="card")
        said = await bot.refusal(method, **parameters)
        assert said.startswith("Bad Request: ")
        assert words in said
        assert [message.text for message in ada.chat.messages] == ["hi", "card"]


GRANTED: list[tuple[str, dict[str, Any]]] = [
    ("sendMessage", {**SEND, "text": "x" * 4096}),
    ("sendMessage", {**SEND, "text": "😀" * 2048}),
    ("sendMessage", {**SEND, "text": "x" * 4096 + "\n \n"}),
    ("sendMessage", _keyboard({"text": "Go", "callback_data": "é" * 32})),
    ("sendMessage", _keyboard(*[BUTTON] * 100)),
    ("sendMessage", _keyboard({"text": "Go", "copy_text": {"text": "x" * 256}})),
    ("sendMessage", _marked("a😀b", _mark("bold", 1, 2))),
    ("sendMessage", _marked("hello", _mark("blockquote", 0, 5), _mark("code", 1, 2))),
    ("sendMessage", _marked("hello", _mark("bold", 0, 5), _mark("italic", 0, 5))),
    ("sendMessage", _marked("hello", _mark("pre", 0, 5, language="py"))),
    ("sendMessage", _marked("hello", _mark("text_link", 0, 5, url="mailto:a@b.c"))),
    ("sendMessage", {**SEND, "link_preview_options": {"is_disabled": True}}),
    (
        "sendMessage",
        {**SEND, "reply_parameters": {"message_id": 9, "allow_sending_without_reply": True}},
    ),
    ("setMyCommands", {"commands": [{"command": "a" * 32, "description": "x" * 256}]}),
    ("sendChatAction", {"chat_id": ADA, "action": "typing"}),
    ("getChat", {"chat_id": ADA}),
    ("getChatMember", {"chat_id": ADA, "user_id": ADA}),
    ("getWebhookInfo", {}),
    ("deleteWebhook", {"drop_pending_updates": True}),
]


@pytest.mark.parametrize(("method", "parameters"), GRANTED)
async def test_what_telegram_takes_is_granted(method: str, parameters: dict[str, Any]) -> None:
    async with served() as (api, bot):
        api.person(ADA)
        assert await bot.call(method, **parameters)
