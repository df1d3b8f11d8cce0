"""What people do in a chat, and the updates the bot gets of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from tests.botapi.chats import BotStatus, Chat, Json, Message, Topic, User
from tests.botapi.methods import MOST_CAPTION_UNITS, MOST_TEXT_UNITS, NO_RIGHTS, RIGHTS
from tests.botapi.presses import Pressed
from tests.botapi.text import Entity, read_text, see_entities, units
from tests.botapi.world import ANONYMOUS, StoredFile, World

CHANNEL = User(136817688, "Channel", username="Channel_Bot", is_bot=True)
TELEGRAM = User(777000, "Telegram")


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that a person sends. `size_bytes` may claim more than there is."""

    name: str
    data: bytes
    content_type: str = "application/octet-stream"
    size_bytes: int | None = None
    caption: str = ""


class Person:
    """Somebody, or another bot, with hands. Every act is over when it returns: the update waits."""

    def __init__(self, world: World, user: User) -> None:
        self._world = world
        self.user = user

    @property
    def id(self) -> int:
        return self.user.id

    @property
    def chat(self) -> Chat:
        """The private chat with the bot."""
        return self._world.chats[self.user.id]

    async def send(
        self,
        chat: Chat | int,
        text: str,
        *,
        reply_to: Message | None = None,
        quote: str | None = None,
        topic: Topic | None = None,
        entities: Sequence[Entity] | None = None,
        as_chat: Chat | None = None,
    ) -> Message:
        """Write a message; as the group itself like an admin who hides, or as a channel."""
        said = read_text(text, see_entities(text) if entities is None else entities)
        if not 1 <= units(said.text) <= MOST_TEXT_UNITS:
            raise ValueError("no client sends that in one message: see paste()")
        fields: Json = {"text": said.text}
        if said.entities:
            fields["entities"] = list(said.entities)
        return await self._say(
            chat, fields, reply_to=reply_to, quote=quote, topic=topic, as_chat=as_chat
        )

    async def paste(
        self, chat: Chat | int, text: str, *, topic: Topic | None = None
    ) -> list[Message]:
        """Write a text of any length, which the client cuts into messages."""
        return [await self.send(chat, part, topic=topic) for part in _parts(text)]

    async def edit(self, message: Message, text: str) -> None:
        """Change what one has written."""
        said = read_text(text, see_entities(text))
        name = "text" if "text" in message.fields else "caption"
        marks = "entities" if name == "text" else "caption_entities"
        message.fields = {
            **{key: value for key, value in message.fields.items() if key != marks},
            name: said.text,
            **({marks: list(said.entities)} if said.entities else {}),
            "edit_date": int(self._world.clock.now_s()),
        }
        message.keep_version()
        self._world.updates.push("edited_message", message.json())
        await trio.lowlevel.checkpoint()

    async def delete(self, message: Message) -> None:
        """Take a message out of the chat; the bot is not told."""
        message.chat.delete(message)
        await trio.lowlevel.checkpoint()

    async def press(self, message: Message, label: str, *, inaccessible: bool = False) -> Pressed:
        """Press the button of that label. Of a message too old the bot sees little more than
        its id: `inaccessible`."""
        data: str = message.button(label)["callback_data"]
        return await self.press_data(message, data, inaccessible=inaccessible)

    async def press_data(
        self, message: Message, data: str, *, inaccessible: bool = False
    ) -> Pressed:
        """What a forged client can do: a press with any data, on any message."""
        world = self._world
        press = Pressed(
            id=str(4_000_000_000_000_000_000 + world.serial()),
            by=self.user.first_name,
            data=data,
            at_s=trio.current_time(),
            asked_s=world.clock.now_s(),
        )
        world.presses[press.id] = press
        message.presses.append(press)
        shown = (
            {"chat": message.chat.json(), "message_id": message.id, "date": 0}
            if inaccessible
            else message.json()
        )
        press.update_id = world.updates.push(
            "callback_query",
            {
                "id": press.id,
                "from": self.user.json(),
                "message": shown,
                "chat_instance": str(7_000_000_000 + message.chat.id),
                "data": data,
            },
        )
        await trio.lowlevel.checkpoint()
        return press

    async def voice(
        self,
        chat: Chat | int,
        data: bytes = b"OggS voice",
        *,
        duration_s: int = 3,
        size_bytes: int | None = None,
        reply_to: Message | None = None,
        topic: Topic | None = None,
    ) -> Message:
        """Send a voice note."""
        file = self._world.store_file(
            "voice.oga", data, content_type="audio/ogg", size_bytes=size_bytes
        )
        fields: Json = {
            "voice": {
                "duration": duration_s,
                "mime_type": file.content_type,
                "file_id": file.id,
                "file_unique_id": file.unique_id,
                "file_size": file.size_bytes,
            }
        }
        return await self._say(chat, fields, reply_to=reply_to, topic=topic)

    async def document(
        self,
        chat: Chat | int,
        attached: Attached,
        *,
        reply_to: Message | None = None,
        topic: Topic | None = None,
    ) -> Message:
        """Send a file."""
        fields = self._file_fields(attached, as_photo=False)
        return await self._say(chat, fields, reply_to=reply_to, topic=topic)

    async def photo(
        self,
        chat: Chat | int,
        attached: Attached,
        *,
        reply_to: Message | None = None,
        topic: Topic | None = None,
    ) -> Message:
        """Send a picture, which comes in several sizes."""
        fields = self._file_fields(attached, as_photo=True)
        return await self._say(chat, fields, reply_to=reply_to, topic=topic)

    async def album(
        self,
        chat: Chat | int,
        files: Sequence[Attached],
        *,
        as_photos: bool = False,
        topic: Topic | None = None,
    ) -> list[Message]:
        """Send files as one: a message each, in one media group."""
        group = str(13_000_000_000 + self._world.serial())
        return [
            await self._say(
                chat,
                {"media_group_id": group, **self._file_fields(one, as_photo=as_photos)},
                topic=topic,
            )
            for one in files
        ]

    async def forward(self, message: Message, chat: Chat | int) -> Message:
        """Pass on what somebody said elsewhere."""
        sender = message.sender or TELEGRAM
        fields = {
            key: value
            for key, value in message.fields.items()
            if key not in {"reply_markup", "quote", "edit_date", "media_group_id"}
        }
        origin = {"type": "user", "date": message.date, "sender_user": sender.json()}
        return await self._say(chat, {"forward_origin": origin, **fields})

    async def open_topic(self, chat: Chat, name: str) -> Topic:
        """Make a topic in a forum."""
        opened = chat.open_topic(self.user, name)
        self._tell("message", opened)
        await trio.lowlevel.checkpoint()
        return chat.topics[opened.id]

    async def delete_topic(self, chat: Chat, topic: Topic) -> None:
        """Remove a topic with all that is in it; the bot is not told."""
        chat.delete_topic(topic)
        await trio.lowlevel.checkpoint()

    async def service(self, chat: Chat, fields: Json, *, topic: Topic | None = None) -> Message:
        """What the chat says by itself when somebody does something: comes, pins, renames."""
        return await self._say(chat, fields, topic=topic)

    async def join(self, chat: Chat) -> Message:
        """Come into a group."""
        return await self.service(chat, {"new_chat_members": [self.user.json()]})

    async def block(self) -> None:
        """Stop the bot in the private chat."""
        await self.set_bot_status(self.chat, "kicked")

    async def unblock(self) -> None:
        """Let the bot write again."""
        await self.set_bot_status(self.chat, "member")

    async def set_bot_status(self, chat: Chat, status: BotStatus) -> None:
        """Make the bot a member or an admin of a chat, or remove it from there."""
        old = chat.bot_status
        chat.bot_status = status
        self._world.updates.push(
            "my_chat_member",
            {
                "chat": chat.json(),
                "from": self.user.json(),
                "date": int(self._world.clock.now_s()),
                "old_chat_member": _member(self._world.bot, old),
                "new_chat_member": _member(self._world.bot, status),
            },
        )
        await trio.lowlevel.checkpoint()

    async def sees(
        self,
        predicate: Callable[[Message], bool],
        *,
        chat: Chat | None = None,
        within_s: float = 20.0,
    ) -> Message:
        """The first message of the bot that fits, as soon as it is in sight."""
        return await (chat or self.chat).wait_for(
            lambda message: message.by_bot and predicate(message), within_s=within_s
        )

    def _file_fields(self, attached: Attached, *, as_photo: bool) -> Json:
        if units(attached.caption) > MOST_CAPTION_UNITS:
            raise ValueError("no client sends so long a caption")
        file = self._world.store_file(
            attached.name,
            attached.data,
            content_type=attached.content_type,
            size_bytes=attached.size_bytes,
        )
        fields: Json = {"photo": self._sizes(file)} if as_photo else {"document": _document(file)}
        if attached.caption:
            fields["caption"] = attached.caption
            marks = see_entities(attached.caption)
            if marks:
                fields["caption_entities"] = list(marks)
        return fields

    def _sizes(self, file: StoredFile) -> list[Json]:
        small = self._world.store_file(file.name, file.data[:64], content_type=file.content_type)
        return [
            {
                "file_id": one.id,
                "file_unique_id": one.unique_id,
                "file_size": one.size_bytes,
                "width": width,
                "height": width * 3 // 4,
            }
            for one, width in ((small, 90), (file, 1280))
        ]

    async def _say(
        self,
        chat: Chat | int,
        fields: Json,
        *,
        reply_to: Message | None = None,
        quote: str | None = None,
        topic: Topic | None = None,
        as_chat: Chat | None = None,
    ) -> Message:
        chat = self._world.chats[chat] if isinstance(chat, int) else chat
        sender = self.user
        if as_chat:
            sender = ANONYMOUS if as_chat is chat else CHANNEL
            fields["sender_chat"] = as_chat.json()
        if quote is not None:
            if reply_to is None or quote not in reply_to.text:
                raise ValueError("a quote is taken from the message that is replied to")
            position = units(reply_to.text[: reply_to.text.index(quote)])
            fields["quote"] = {"text": quote, "position": position, "is_manual": True}
        if topic is None and reply_to is not None:
            topic = reply_to.topic
        message = chat.add(sender, fields, reply_to=reply_to, topic=topic)
        self._tell("message", message)
        await trio.lowlevel.checkpoint()
        return message

    def _tell(self, kind: str, message: Message) -> None:
        if message.chat.bot_status in {"member", "administrator"}:
            self._world.updates.push(kind, message.json())


def _parts(text: str) -> list[str]:
    parts = [""]
    for line in text.splitlines(keepends=True):
        for start in range(0, len(line), MOST_TEXT_UNITS // 2):
            piece = line[start : start + MOST_TEXT_UNITS // 2]
            if units(parts[-1] + piece) > MOST_TEXT_UNITS:
                parts.append("")
            parts[-1] += piece
    return parts


def _document(file: StoredFile) -> Json:
    return {
        "file_name": file.name,
        "mime_type": file.content_type,
        "file_id": file.id,
        "file_unique_id": file.unique_id,
        "file_size": file.size_bytes,
    }


def _member(bot: User, status: BotStatus) -> Json:
    json: Json = {"user": bot.json(), "status": status}
    if status == "kicked":
        json["until_date"] = 0
    if status == "administrator":
        json |= dict.fromkeys(RIGHTS, True) | dict.fromkeys(NO_RIGHTS, False)
    return json
