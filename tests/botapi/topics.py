"""The methods that make, change and remove the topics of a forum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tests.botapi.chats import Chat, Json, Topic
from tests.botapi.refusal import bad_request
from tests.botapi.text import units
from tests.botapi.world import World

Method: TypeAlias = Callable[[World, Json], Any]

MOST_NAME_UNITS = 128
COLORS = (7322096, 16766590, 13338331, 9367192, 16749490, 16478047)


def create_forum_topic(world: World, parameters: Json) -> Json:
    chat = _forum_of(world, parameters)
    name = _topic_name(parameters)
    icon_color = parameters.get("icon_color", COLORS[0])
    if icon_color not in COLORS:
        raise bad_request("invalid icon color specified")
    opened = chat.open_topic(world.bot, name, icon_color=icon_color)
    return {"message_thread_id": opened.id, "name": name, "icon_color": icon_color}


def edit_forum_topic(world: World, parameters: Json) -> bool:
    chat = _forum_of(world, parameters)
    topic = _known_topic(chat, parameters)
    if "name" not in parameters or topic.name == parameters["name"]:
        raise bad_request("TOPIC_NOT_MODIFIED")
    topic.name = _topic_name(parameters)
    chat.add(world.bot, {"forum_topic_edited": {"name": topic.name}}, topic=topic)
    return True


def close_forum_topic(world: World, parameters: Json) -> bool:
    return _set_closed(world, parameters, closed=True)


def reopen_forum_topic(world: World, parameters: Json) -> bool:
    return _set_closed(world, parameters, closed=False)


def delete_forum_topic(world: World, parameters: Json) -> bool:
    chat = _forum_of(world, parameters)
    chat.delete_topic(_known_topic(chat, parameters))
    return True


TOPIC_METHODS: Mapping[str, Method] = {
    "createForumTopic": create_forum_topic,
    "editForumTopic": edit_forum_topic,
    "closeForumTopic": close_forum_topic,
    "reopenForumTopic": reopen_forum_topic,
    "deleteForumTopic": delete_forum_topic,
}


def _forum_of(world: World, parameters: Json) -> Chat:
    chat = world.writable_chat(parameters["chat_id"])
    if not chat.is_forum:
        raise bad_request("the chat is not a forum")
    if chat.bot_status != "administrator":
        raise bad_request("not enough rights to create a topic")
    return chat


def _known_topic(chat: Chat, parameters: Json) -> Topic:
    topic = chat.topics.get(parameters["message_thread_id"])
    if topic is None:
        raise bad_request("TOPIC_ID_INVALID")
    return topic


def _topic_name(parameters: Json) -> str:
    name: str = parameters["name"].strip()
    if not 1 <= units(name) <= MOST_NAME_UNITS:
        raise bad_request("TOPIC_TITLE_EMPTY" if not name else "TOPIC_TITLE_TOO_LONG")
    return name


def _set_closed(world: World, parameters: Json, *, closed: bool) -> bool:
    chat = _forum_of(world, parameters)
    topic = _known_topic(chat, parameters)
    if topic.closed == closed:
        raise bad_request("TOPIC_NOT_MODIFIED")
    topic.closed = closed
    kind = "forum_topic_closed" if closed else "forum_topic_reopened"
    chat.add(world.bot, {kind: {}}, topic=topic)
    return True
