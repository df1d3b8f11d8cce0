"""What comes in from a person, in words that no transport owns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from takopi.core.ids import InboxId, MessageRef, Scope

ChatType = Literal["private", "group", "supergroup", "channel"]


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice note that the transport can fetch by its file id."""

    file_id: str
    duration_s: int
    mime_type: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A file or a photo that the transport can fetch by its file id."""

    file_id: str
    name: str
    mime_type: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True)
class IncomingMessage:
    """One message from a person.

    `raw` is the transport's own dictionary and stays None outside the transport. `to_bot` says
    that it speaks to the bot, by its name or as a reply; in a private chat it always does.
    `album` is the same for messages that were sent as one. `joined` are the numbers of further
    messages that this one stands for.
    """

    transport: str
    chat_id: int
    message_id: int
    text: str
    reply_to_message_id: int | None
    reply_to_text: str | None
    sender_id: int | None
    raw: dict[str, Any] | None = None
    thread_id: int | None = None
    chat_type: ChatType = "private"
    update_id: int | None = None
    quote: str | None = None
    voice: Voice | None = None
    documents: tuple[Document, ...] = ()
    sent_ms: int | None = None
    to_bot: bool = True
    album: str | None = None
    joined: tuple[int, ...] = ()

    @property
    def ref(self) -> MessageRef:
        """This message, as a key."""
        return MessageRef(self.transport, self.chat_id, self.message_id)

    @property
    def reply_ref(self) -> MessageRef | None:
        """The message it replies to, as a key."""
        if self.reply_to_message_id is None:
            return None
        return MessageRef(self.transport, self.chat_id, self.reply_to_message_id)

    @property
    def scope(self) -> Scope:
        """The chat or topic it was sent to."""
        return Scope(self.transport, self.chat_id, self.thread_id)


@dataclass(frozen=True, slots=True)
class Edited:
    """A person changed a message of theirs; `message` is how it reads now."""

    message: IncomingMessage


@dataclass(frozen=True, slots=True)
class Press:
    """A person pressed a button. `id` is what the transport wants back as acknowledgement."""

    id: str
    scope: Scope
    message_id: int
    sender_id: int
    data: str

    @property
    def ref(self) -> MessageRef:
        """The message that carries the button."""
        return MessageRef(self.scope.transport, self.scope.chat_id, self.message_id)


Incoming: TypeAlias = IncomingMessage | Edited | Press


@dataclass(frozen=True, slots=True)
class Arrival:
    """Something that came in and is in the inbox: it is handled at most once.

    `parts` came after it and belong to it: what a chat has split into several messages.
    """

    inbox_id: InboxId
    what: Incoming
    parts: tuple[Arrival, ...] = ()
