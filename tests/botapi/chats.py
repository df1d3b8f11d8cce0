"""Chats as they are: people, topics, and messages with everything that ever happened to them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import trio

from tests.botapi.presses import Pressed
from tests.botapi.text import Entity

ChatType = Literal["private", "group", "supergroup", "channel"]
BotStatus = Literal["member", "administrator", "left", "kicked"]
Json = dict[str, Any]


class Clock:
    """The time of day, which a test can let pass."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def now_s(self) -> float:
        return time.time() + self._ahead_s

    def pass_s(self, seconds: float) -> None:
        self._ahead_s += seconds


@dataclass(frozen=True, slots=True)
class User:
    """A person or a bot."""

    id: int
    first_name: str
    username: str | None = None
    is_bot: bool = False
    language_code: str | None = None

    def json(self) -> Json:
        json: Json = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        if self.username:
            json["username"] = self.username
        if self.language_code:
            json["language_code"] = self.language_code
        return json


@dataclass(frozen=True, slots=True)
class Version:
    """How a message read from a moment on, in Trio's time."""

    at_s: float
    text: str
    entities: tuple[Entity, ...]
    buttons: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Topic:
    """A topic of a forum; its id is that of the service message that opened it."""

    id: int
    name: str
    icon_color: int = 7322096
    closed: bool = False


@dataclass(slots=True, eq=False)
class Message:
    """A message as it reads now, with its versions. `fields` are the Bot API's own."""

    chat: Chat
    id: int
    date: int
    sender: User | None
    fields: Json
    reply_to: Message | None = None
    topic: Topic | None = None
    thread_id: int | None = None
    silent: bool = False
    deleted_at_s: float | None = None
    versions: list[Version] = field(default_factory=list[Version])
    presses: list[Pressed] = field(default_factory=list[Pressed])

    @property
    def text(self) -> str:
        """The text, or the caption of a file."""
        return self.fields.get("text", self.fields.get("caption", ""))

    @property
    def entities(self) -> tuple[Entity, ...]:
        return tuple(self.fields.get("entities", self.fields.get("caption_entities", ())))

    @property
    def by_bot(self) -> bool:
        """Whether it is from the bot under test."""
        return self.sender is not None and self.sender.id == self.chat.bot.id

    @property
    def keyboard(self) -> list[list[Json]]:
        return self.fields.get("reply_markup", {}).get("inline_keyboard", [])

    @property
    def buttons(self) -> tuple[tuple[str, ...], ...]:
        """The labels of its buttons, row by row."""
        return tuple(tuple(button["text"] for button in row) for row in self.keyboard)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its buttons in one row."""
        return tuple(label for row in self.buttons for label in row)

    def button(self, label: str) -> Json:
        """The only button of that label."""
        found = [button for row in self.keyboard for button in row if button["text"] == label]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} buttons {label!r} among {list(self.labels)}")
        return found[0]

    def json(self, *, with_reply: bool = True) -> Json:
        """The message as the Bot API shows it. A message within a message has none itself."""
        json: Json = {"message_id": self.id}
        if self.sender:
            json["from"] = self.sender.json()
        json["chat"] = self.chat.json()
        json["date"] = self.date
        if self.thread_id is not None:
            json["message_thread_id"] = self.thread_id
        if self.topic:
            json["is_topic_message"] = True
        if with_reply:
            # In a topic, what replies to nothing else is a reply to the message that opened it.
            shown = self.reply_to or (self.topic and self.chat.find(self.topic.id))
            if shown and shown is not self:
                json["reply_to_message"] = shown.json(with_reply=False)
        json.update(self.fields)
        return json

    def keep_version(self) -> None:
        self.versions.append(Version(trio.current_time(), self.text, self.entities, self.buttons))
        self.chat.note_change()


class Chat:
    """One chat, with its messages in the order they were sent."""

    def __init__(
        self,
        id_: int,
        type_: ChatType,
        *,
        bot: User,
        clock: Clock,
        title: str | None = None,
        person: User | None = None,
        is_forum: bool = False,
    ) -> None:
        self.id = id_
        self.type = type_
        self.bot = bot
        self.title = title
        self.person = person
        self.is_forum = is_forum
        self.bot_status: BotStatus = "member" if type_ == "private" else "administrator"
        self.migrated_to: int | None = None
        self.topics: dict[int, Topic] = {}
        self.admins: set[int] = set()
        self.actions: list[tuple[float, str]] = []
        self._clock = clock
        self._messages: dict[int, Message] = {}
        self._next_id = 1
        self._changed = trio.Event()

    @property
    def messages(self) -> list[Message]:
        """What can be seen in the chat now."""
        return [one for one in self._messages.values() if one.deleted_at_s is None]

    @property
    def everything(self) -> list[Message]:
        """All messages that ever were, deleted ones too."""
        return list(self._messages.values())

    @property
    def bot_messages(self) -> list[Message]:
        """What can be seen of the bot now."""
        return [one for one in self.messages if one.by_bot]

    def find(self, message_id: int) -> Message | None:
        """A message that can be seen."""
        message = self._messages.get(message_id)
        return message if message and message.deleted_at_s is None else None

    async def wait_for(
        self, predicate: Callable[[Message], bool], *, within_s: float = 20.0
    ) -> Message:
        """The first message in sight that fits, as soon as there is one."""
        with trio.move_on_after(within_s):
            while True:
                for message in self.messages:
                    if predicate(message):
                        return message
                await self._changed.wait()
        raise AssertionError(f"not seen within {within_s} s in:\n{self.transcript()}")

    async def wait_until(
        self, predicate: Callable[[Chat], bool], *, within_s: float = 20.0
    ) -> None:
        """Until the chat as a whole is so."""
        with trio.move_on_after(within_s):
            while not predicate(self):
                await self._changed.wait()
            return
        raise AssertionError(f"not so within {within_s} s:\n{self.transcript()}")

    def transcript(self) -> str:
        """The chat as a person sees it."""
        from tests.botapi.transcript import transcript

        return transcript(self)

    def json(self) -> Json:
        json: Json = {"id": self.id, "type": self.type}
        if self.person:
            json["first_name"] = self.person.first_name
            if self.person.username:
                json["username"] = self.person.username
        if self.title is not None:
            json["title"] = self.title
        if self.is_forum:
            json["is_forum"] = True
        return json

    def add(
        self,
        sender: User | None,
        fields: Json,
        *,
        reply_to: Message | None = None,
        topic: Topic | None = None,
        silent: bool = False,
    ) -> Message:
        """A new message at the end of the chat."""
        message = Message(
            chat=self,
            id=self._next_id,
            date=int(self._clock.now_s()),
            sender=sender,
            fields=fields,
            reply_to=reply_to,
            topic=topic,
            thread_id=self._thread_id(reply_to, topic),
            silent=silent,
        )
        self._next_id += 1
        self._messages[message.id] = message
        message.keep_version()
        return message

    def delete(self, message: Message) -> None:
        message.deleted_at_s = trio.current_time()
        self.note_change()

    def open_topic(self, by: User, name: str, *, icon_color: int = 7322096) -> Message:
        """A new topic; the service message that opens it gives it its id."""
        topic = Topic(self._next_id, name, icon_color)
        self.topics[topic.id] = topic
        return self.add(
            by, {"forum_topic_created": {"name": name, "icon_color": icon_color}}, topic=topic
        )

    def delete_topic(self, topic: Topic) -> None:
        """A topic goes with all its messages, and nobody tells the bot."""
        del self.topics[topic.id]
        for message in self.messages:
            if message.topic is topic:
                message.deleted_at_s = trio.current_time()
        self.note_change()

    def note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _thread_id(self, reply_to: Message | None, topic: Topic | None) -> int | None:
        if topic:
            return topic.id
        if reply_to and self.type == "supergroup":
            # Replies make a thread of their own, which is no topic.
            return reply_to.thread_id or reply_to.id
        return None
