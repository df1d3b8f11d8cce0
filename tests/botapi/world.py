"""Everything the server knows: the bot, the people, their chats, files, and presses of buttons."""

from __future__ import annotations

from dataclasses import dataclass

from tests.botapi.chats import Chat, Clock, Json, Message, User
from tests.botapi.presses import Pressed
from tests.botapi.refusal import Refused, bad_request, forbidden
from tests.botapi.updates import Updates

QUERY_LIFETIME_S = 60.0
ANONYMOUS = User(1087968824, "Group", username="GroupAnonymousBot", is_bot=True)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that can be fetched by its id."""

    id: str
    name: str
    data: bytes
    content_type: str
    size_bytes: int

    @property
    def unique_id(self) -> str:
        return f"u{self.id}"

    @property
    def path(self) -> str:
        return f"documents/{self.id}_{self.name}"


class World:
    """The state behind the Bot API."""

    def __init__(self, bot: User) -> None:
        self.bot = bot
        self.clock = Clock()
        self.updates = Updates(self.clock)
        self.users: dict[int, User] = {bot.id: bot}
        self.chats: dict[int, Chat] = {}
        self.presses: dict[str, Pressed] = {}
        self.files: dict[str, StoredFile] = {}
        self.commands: dict[str, list[Json]] = {}
        self._serial = 0

    def serial(self) -> int:
        """A number that was never given out before."""
        self._serial += 1
        return self._serial

    def store_file(
        self, name: str, data: bytes, *, content_type: str, size_bytes: int | None = None
    ) -> StoredFile:
        """Keep a file. `size_bytes` may claim more than there is."""
        size_bytes = len(data) if size_bytes is None else size_bytes
        file = StoredFile(f"file{self.serial():06}", name, data, content_type, size_bytes)
        self.files[file.id] = file
        return file

    def post(self, channel: Chat, text: str) -> Message:
        """What an admin writes in a channel, where nobody is named."""
        message = channel.add(None, {"sender_chat": channel.json(), "text": text})
        self.updates.push("channel_post", message.json())
        return message

    def migrate(self, group: Chat, new_id: int) -> Chat:
        """A group becomes a supergroup of another id, and both say so."""
        chat = Chat(new_id, "supergroup", bot=self.bot, clock=self.clock, title=group.title)
        chat.bot_status = group.bot_status
        self.chats[new_id] = chat
        group.migrated_to = new_id
        for place, note in (
            (group, {"migrate_to_chat_id": new_id}),
            (chat, {"migrate_from_chat_id": group.id}),
        ):
            told = place.add(ANONYMOUS, {"sender_chat": place.json(), **note})
            self.updates.push("message", told.json())
        return chat

    def writable_chat(self, chat_id: object) -> Chat:
        """The chat of a request; refused as Telegram refuses it when the bot cannot write there."""
        chat = self.known_chat(chat_id)
        if chat.migrated_to is not None:
            raise Refused(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                parameters={"migrate_to_chat_id": chat.migrated_to},
            )
        if chat.bot_status == "kicked" and chat.type == "private":
            raise forbidden("bot was blocked by the user")
        if chat.bot_status == "kicked":
            raise forbidden(f"bot was kicked from the {chat.type} chat")
        if chat.bot_status == "left":
            raise forbidden(f"bot is not a member of the {chat.type} chat")
        return chat

    def known_chat(self, chat_id: object) -> Chat:
        chat = self.chats.get(chat_id) if isinstance(chat_id, int) else None
        if chat is None:
            raise bad_request("chat not found")
        return chat
