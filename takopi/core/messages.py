"""What a person sent, in words that no transport owns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from takopi.core.ids import MessageRef, Scope

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

    `raw` is the transport's own dictionary and stays None outside the transport.
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
    document: Document | None = None

    @property
    def ref(self) -> MessageRef:
        """This message, as a key."""
        return MessageRef(self.transport, self.chat_id, self.message_id)

    @property
    def scope(self) -> Scope:
        """The chat or topic it was sent to."""
        return Scope(self.transport, self.chat_id, self.thread_id)
