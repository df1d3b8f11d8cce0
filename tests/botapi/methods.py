"""What each method does to the world, and when it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping

import trio

from tests.botapi.chats import Chat, Json, Message, Topic
from tests.botapi.markup import read_markup
from tests.botapi.refusal import Refused, bad_request
from tests.botapi.schema import Upload
from tests.botapi.text import Formatted, read_text, units, url_problem
from tests.botapi.topics import TOPIC_METHODS, Method
from tests.botapi.world import QUERY_LIFETIME_S, World

MOST_TEXT_UNITS = 4096
MOST_CAPTION_UNITS = 1024
MOST_ANSWER_UNITS = 200
MOST_COMMANDS = 100
MOST_UPLOAD_BYTES = 50 * 1024 * 1024
MOST_DOWNLOAD_BYTES = 20 * 1024 * 1024
DELETABLE_S = 48 * 3600
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
QUERY_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"
ACTIONS = frozenset({
    "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice",
    "upload_document", "choose_sticker", "find_location", "record_video_note",
    "upload_video_note",
})  # fmt: skip


RIGHTS = (
    "can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_invite_users",
    "can_pin_messages", "can_manage_topics", "can_send_welcome_messages",
)  # fmt: skip
NO_RIGHTS = (
    "can_be_edited", "is_anonymous", "can_promote_members", "can_change_info",
    "can_restrict_members", "can_post_stories", "can_edit_stories", "can_delete_stories",
)  # fmt: skip


def get_me(world: World, _: Json) -> Json:
    return {
        **world.bot.json(),
        "can_join_groups": True,
        "can_read_all_group_messages": True,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


def send_message(world: World, parameters: Json) -> Json:
    chat = world.writable_chat(parameters["chat_id"])
    said = _message_text(parameters)
    if units(said.text) > MOST_TEXT_UNITS:
        raise bad_request("message is too long")
    return _send(world, chat, parameters, _text_fields(parameters, said)).json()


def send_document(world: World, parameters: Json) -> Json:
    chat = world.writable_chat(parameters["chat_id"])
    caption = _caption_of(parameters)
    document = parameters["document"]
    if isinstance(document, Upload):
        if not document.data:
            raise bad_request("file must be non-empty")
        if len(document.data) > MOST_UPLOAD_BYTES:
            raise Refused(413, "Request Entity Too Large")
        file = world.store_file(document.name, document.data, content_type=document.content_type)
    elif document in world.files:
        file = world.files[document]
    else:
        raise bad_request("wrong file identifier/HTTP URL specified")
    fields: Json = {
        "document": {
            "file_id": file.id,
            "file_unique_id": file.unique_id,
            "file_name": file.name,
            "mime_type": file.content_type,
            "file_size": file.size_bytes,
        }
    }
    _put_caption(fields, caption)
    return _send(world, chat, parameters, fields).json()


def edit_message_text(world: World, parameters: Json) -> Json:
    message = _own_message(world, parameters)
    if "text" not in message.fields:
        raise bad_request("there is no text in the message to edit")
    said = _message_text(parameters)
    if units(said.text) > MOST_TEXT_UNITS:
        raise bad_request("MESSAGE_TOO_LONG")
    kept = {name: value for name, value in message.fields.items() if name not in _TEXT_FIELDS}
    return _edit(world, message, {**kept, **_text_fields(parameters, said)}, parameters)


def edit_message_caption(world: World, parameters: Json) -> Json:
    message = _own_message(world, parameters)
    if "document" not in message.fields:
        raise bad_request("there is no caption in the message to edit")
    kept = {name: value for name, value in message.fields.items() if "caption" not in name}
    _put_caption(kept, _caption_of(parameters))
    return _edit(world, message, kept, parameters)


def edit_message_reply_markup(world: World, parameters: Json) -> Json:
    message = _own_message(world, parameters)
    return _edit(world, message, dict(message.fields), parameters)


def delete_message(world: World, parameters: Json) -> bool:
    chat = world.writable_chat(parameters["chat_id"])
    message = chat.find(parameters["message_id"])
    if message is None:
        raise bad_request("message to delete not found")
    if not (message.by_bot or chat.type == "private" or chat.bot_status == "administrator"):
        raise bad_request("message can't be deleted")
    if world.clock.now_s() - message.date > DELETABLE_S:
        raise bad_request("message can't be deleted for everyone")
    chat.delete(message)
    return True


def delete_messages(world: World, parameters: Json) -> bool:
    chat = world.writable_chat(parameters["chat_id"])
    ids: list[int] = parameters["message_ids"]
    if not 1 <= len(ids) <= 100:
        raise bad_request("too many message identifiers specified")
    for message_id in ids:
        if chat.find(message_id):
            delete_message(world, {"chat_id": chat.id, "message_id": message_id})
    return True


def answer_callback_query(world: World, parameters: Json) -> bool:
    press = world.presses.get(parameters["callback_query_id"])
    text: str = parameters.get("text", "")
    if press is None or press.answer or world.clock.now_s() - press.asked_s > QUERY_LIFETIME_S:
        raise bad_request(QUERY_TOO_OLD)
    if units(text) > MOST_ANSWER_UNITS:
        raise bad_request("MESSAGE_TOO_LONG")
    press.settle(text, alert=parameters.get("show_alert", False))
    return True


def send_chat_action(world: World, parameters: Json) -> bool:
    chat = world.writable_chat(parameters["chat_id"])
    _topic_of(chat, parameters)
    if parameters["action"] not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    chat.actions.append((trio.current_time(), parameters["action"]))
    return True


def get_file(world: World, parameters: Json) -> Json:
    file = world.files.get(parameters["file_id"])
    if file is None:
        raise bad_request("invalid file_id")
    if file.size_bytes > MOST_DOWNLOAD_BYTES:
        raise bad_request("file is too big")
    return {
        "file_id": file.id,
        "file_unique_id": file.unique_id,
        "file_size": file.size_bytes,
        "file_path": file.path,
    }


def set_my_commands(world: World, parameters: Json) -> bool:
    commands: list[Json] = parameters["commands"]
    if len(commands) > MOST_COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= units(command["description"].strip()) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    names = [command["command"] for command in commands]
    if len(set(names)) < len(names):
        raise bad_request("a command is there twice")
    world.commands[_commands_key(parameters)] = commands
    return True


def get_my_commands(world: World, parameters: Json) -> list[Json]:
    return world.commands.get(_commands_key(parameters), [])


def delete_my_commands(world: World, parameters: Json) -> bool:
    world.commands.pop(_commands_key(parameters), None)
    return True


def get_chat(world: World, parameters: Json) -> Json:
    chat = world.writable_chat(parameters["chat_id"])
    return {
        **chat.json(),
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(
            (
                "unlimited_gifts",
                "limited_gifts",
                "unique_gifts",
                "premium_subscription",
                "gifts_from_channels",
            ),
            False,
        ),
    }


def get_chat_member(world: World, parameters: Json) -> Json:
    chat = world.writable_chat(parameters["chat_id"])
    user = world.users.get(parameters["user_id"])
    if user is None:
        raise bad_request("user not found")
    status = "administrator" if user.id in chat.admins else "member"
    member: Json = {"user": user.json(), "status": status}
    if status == "administrator":
        member |= dict.fromkeys(RIGHTS, True) | dict.fromkeys(NO_RIGHTS, False)
    return member


def delete_webhook(world: World, parameters: Json) -> bool:
    if parameters.get("drop_pending_updates"):
        world.updates.forget()
    return True


def get_webhook_info(world: World, _: Json) -> Json:
    return {
        "url": "",
        "has_custom_certificate": False,
        "pending_update_count": len(world.updates.unconfirmed),
    }


METHODS: Mapping[str, Method] = {
    "getMe": get_me,
    "sendMessage": send_message,
    "sendDocument": send_document,
    "editMessageText": edit_message_text,
    "editMessageCaption": edit_message_caption,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
    "answerCallbackQuery": answer_callback_query,
    "sendChatAction": send_chat_action,
    "getFile": get_file,
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "deleteMyCommands": delete_my_commands,
    "getChat": get_chat,
    "getChatMember": get_chat_member,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
    **TOPIC_METHODS,
}
_TEXT_FIELDS = frozenset({"text", "entities", "link_preview_options"})


def _text_of(parameters: Json, text: str, entities: str) -> Formatted:
    if "parse_mode" in parameters:
        raise bad_request("parse_mode is not served here: send entities")
    if "rich_message" in parameters:
        raise bad_request("rich_message is not served here: send text")
    return read_text(parameters.get(text, ""), parameters.get(entities, ()))


def _message_text(parameters: Json) -> Formatted:
    said = _text_of(parameters, "text", "entities")
    if not parameters.get("text"):
        raise bad_request("message text is empty")
    if not said.text:
        raise bad_request("text must be non-empty")
    preview: Json = parameters.get("link_preview_options", {})
    if url_problem(preview.get("url", "https://telegram.org")):
        raise bad_request("WEBPAGE_URL_INVALID")
    return said


def _caption_of(parameters: Json) -> Formatted:
    caption = _text_of(parameters, "caption", "caption_entities")
    if units(caption.text) > MOST_CAPTION_UNITS:
        raise bad_request("message caption is too long")
    return caption


def _put_caption(fields: Json, caption: Formatted) -> None:
    if caption.text:
        fields["caption"] = caption.text
    if caption.entities:
        fields["caption_entities"] = list(caption.entities)


def _text_fields(parameters: Json, said: Formatted) -> Json:
    fields: Json = {"text": said.text}
    if said.entities:
        fields["entities"] = list(said.entities)
    if parameters.get("link_preview_options"):
        fields["link_preview_options"] = parameters["link_preview_options"]
    return fields


def _send(world: World, chat: Chat, parameters: Json, fields: Json) -> Message:
    topic = _topic_of(chat, parameters)
    reply_to = _reply_of(chat, parameters)
    if topic is None and reply_to is not None:
        topic = reply_to.topic
    markup = read_markup(parameters)
    if markup:
        fields["reply_markup"] = markup
    quote = parameters.get("reply_parameters", {}).get("quote")
    if reply_to and quote:
        if quote not in reply_to.text:
            raise bad_request("QUOTE_TEXT_INVALID")
        position = units(reply_to.text[: reply_to.text.index(quote)])
        fields["quote"] = {"text": quote, "position": position, "is_manual": True}
    return chat.add(
        world.bot,
        fields,
        reply_to=reply_to,
        topic=topic,
        silent=parameters.get("disable_notification", False),
    )


def _topic_of(chat: Chat, parameters: Json) -> Topic | None:
    thread_id = parameters.get("message_thread_id")
    if thread_id is None:
        return None
    topic = chat.topics.get(thread_id)
    if topic is None:
        raise bad_request("message thread not found")
    if topic.closed and chat.bot_status != "administrator":
        raise bad_request("TOPIC_CLOSED")
    return topic


def _reply_of(chat: Chat, parameters: Json) -> Message | None:
    reply: Json | None = parameters.get("reply_parameters")
    if reply is None:
        return None
    if reply.get("chat_id", chat.id) != chat.id:
        raise bad_request("replies to other chats are not served here")
    message = chat.find(reply["message_id"])
    if message is None and not reply.get("allow_sending_without_reply"):
        raise bad_request("message to be replied not found")
    return message


def _own_message(world: World, parameters: Json) -> Message:
    if "chat_id" not in parameters:
        raise bad_request("chat_id is empty")
    if "message_id" not in parameters:
        raise bad_request("message identifier is not specified")
    chat = world.writable_chat(parameters["chat_id"])
    message = chat.find(parameters["message_id"])
    if message is None:
        raise bad_request("message to edit not found")
    if not message.by_bot:
        raise bad_request("message can't be edited")
    return message


def _edit(world: World, message: Message, fields: Json, parameters: Json) -> Json:
    fields.pop("reply_markup", None)
    markup = read_markup(parameters)
    if markup:
        fields["reply_markup"] = markup
    before = {name: value for name, value in message.fields.items() if name != "edit_date"}
    after = {name: value for name, value in fields.items() if name != "edit_date"}
    if before == after:
        raise bad_request(NOT_MODIFIED)
    fields["edit_date"] = int(world.clock.now_s())
    message.fields = fields
    message.keep_version()
    return message.json()


def _commands_key(parameters: Json) -> str:
    scope = parameters.get("scope", {"type": "default"})
    return f"{sorted(scope.items())} {parameters.get('language_code', '')}"
