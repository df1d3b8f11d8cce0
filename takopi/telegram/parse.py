"""The only reader of Telegram's updates: what is not understood is None, and never an error.

An update is read twice. `envelope` sees the sender and the chat and nothing else; only what was
let in is read by `parse`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from takopi.core.ids import Scope
from takopi.core.messages import (
    ChatType,
    Document,
    Edited,
    Incoming,
    IncomingMessage,
    Press,
    Voice,
)
from takopi.routing.authorize import Envelope

NAME = "telegram"

T = TypeVar("T")

# Telegram's numbers fit into 52 bits; what does not is none of them, and would not fit the store.
_Id = Annotated[int, Meta(ge=-(2**52), le=2**52)]
_Count = Annotated[int, Meta(ge=0, le=2**52)]


@dataclass(frozen=True, slots=True)
class Bot:
    """Whom a message in a group has to name to be meant for the bot."""

    id: int
    name: str


class _Numbered(Struct, frozen=True):
    id: _Id


class _Signed(Struct, frozen=True):
    """Who wrote a message and where: sender and chat, and nothing else of it."""

    chat: _Numbered
    from_: _Numbered | None = field(default=None, name="from")
    sender_chat: _Numbered | None = None


class _SignedPress(Struct, frozen=True):
    from_: _Numbered = field(name="from")
    message: _Signed | None = None


class _Signature(Struct, frozen=True):
    update_id: _Id
    message: _Signed | None = None
    edited_message: _Signed | None = None
    callback_query: _SignedPress | None = None


class _UpdateId(Struct, frozen=True):
    update_id: _Id


class _Member(Struct, frozen=True):
    status: str


class _Membership(Struct, frozen=True):
    chat: _Numbered
    new_chat_member: _Member


class _MembershipUpdate(Struct, frozen=True):
    my_chat_member: _Membership


class _Chat(Struct, frozen=True):
    id: _Id
    type: ChatType


class _Entity(Struct, frozen=True):
    type: str
    offset: _Count
    length: _Count
    user: _Numbered | None = None


class _Quote(Struct, frozen=True):
    text: str = ""


class _File(Struct, frozen=True):
    file_id: str
    file_name: str | None = None
    mime_type: str | None = None
    file_size: _Count | None = None
    duration: _Count = 0
    width: _Count = 0
    height: _Count = 0


class _Replied(Struct, frozen=True):
    message_id: _Id
    from_: _Numbered | None = field(default=None, name="from")
    text: str | None = None
    caption: str | None = None


class _Message(Struct, frozen=True):
    message_id: _Id
    date: _Count
    chat: _Chat
    from_: _Numbered | None = field(default=None, name="from")
    message_thread_id: _Id | None = None
    is_topic_message: bool = False
    reply_to_message: _Replied | None = None
    quote: _Quote | None = None
    media_group_id: str | None = None
    text: str | None = None
    caption: str | None = None
    entities: tuple[_Entity, ...] = ()
    caption_entities: tuple[_Entity, ...] = ()
    voice: _File | None = None
    document: _File | None = None
    photo: tuple[_File, ...] = ()
    audio: _File | None = None
    video: _File | None = None
    video_note: _File | None = None


class _Pressed(Struct, frozen=True):
    """The message under a button; of an old one Telegram tells no more than this."""

    message_id: _Id
    chat: _Numbered
    message_thread_id: _Id | None = None
    is_topic_message: bool = False


class _Press(Struct, frozen=True):
    id: str
    from_: _Numbered = field(name="from")
    message: _Pressed | None = None
    data: str | None = None


class _Update(Struct, frozen=True):
    update_id: _Id
    message: _Message | None = None
    edited_message: _Message | None = None
    callback_query: _Press | None = None


def update_id(update: bytes | msgspec.Raw) -> int | None:
    """The update's number; None for what is no update at all."""
    found = _read(update, _UpdateId)
    return None if found is None else found.update_id


def envelope(update: bytes | msgspec.Raw) -> Envelope | None:
    """Who sent the update and to which chat; None for a kind that nobody acts upon."""
    read = _read(update, _Signature)
    if read is None:
        return None
    if (message := read.message or read.edited_message) is not None:
        # Who writes in the name of a group or a channel does not say who they are.
        named = message.from_ if message.sender_chat is None else None
        return Envelope(None if named is None else named.id, message.chat.id)
    if (press := read.callback_query) is not None:
        return Envelope(press.from_.id, None if press.message is None else press.message.chat.id)
    return None


def chat_regained(update: bytes | msgspec.Raw) -> int | None:
    """The chat that has just let the bot in again, if the update says that."""
    read = _read(update, _MembershipUpdate)
    if read is None or read.my_chat_member.new_chat_member.status in {"left", "kicked"}:
        return None
    return read.my_chat_member.chat.id


def parse(update: bytes | msgspec.Raw, bot: Bot) -> Incoming | None:
    """What a person did; None for everything that is not a message, an edit or a press."""
    read = _read(update, _Update)
    if read is None:
        return None
    if read.message is not None:
        return _incoming(read.message, read.update_id, bot)
    if read.edited_message is not None:
        message = _incoming(read.edited_message, read.update_id, bot)
        return None if message is None else Edited(message)
    press = read.callback_query
    if press is None or press.message is None or press.data is None:
        return None
    topic_id = press.message.message_thread_id if press.message.is_topic_message else None
    return Press(
        id=press.id,
        scope=Scope(NAME, press.message.chat.id, topic_id),
        message_id=press.message.message_id,
        sender_id=press.from_.id,
        data=press.data,
    )


def _read(update: bytes | msgspec.Raw, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(update, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _incoming(message: _Message, number: int, bot: Bot) -> IncomingMessage | None:
    voice = _voice(message)
    document = _document(message)
    text = message.text if message.text is not None else message.caption
    if text is None and voice is None and document is None:
        # A service message, a sticker, a location: nothing that can be worked on.
        return None
    topic_id = message.message_thread_id if message.is_topic_message else None
    reply = message.reply_to_message
    if reply is not None and topic_id is not None and reply.message_id == topic_id:
        # Every message of a topic replies to the topic's first, unless it replies to another.
        reply = None
    replied = None if reply is None else (reply.text if reply.text is not None else reply.caption)
    return IncomingMessage(
        transport=NAME,
        chat_id=message.chat.id,
        message_id=message.message_id,
        text=text or "",
        reply_to_message_id=None if reply is None else reply.message_id,
        reply_to_text=replied,
        sender_id=None if message.from_ is None else message.from_.id,
        thread_id=topic_id,
        chat_type=message.chat.type,
        update_id=number,
        quote=None if message.quote is None else message.quote.text or None,
        voice=voice,
        documents=() if document is None else (document,),
        sent_ms=message.date * 1000,
        to_bot=_is_to_bot(message, reply, bot),
        album=message.media_group_id,
    )


def _is_to_bot(message: _Message, reply: _Replied | None, bot: Bot) -> bool:
    if message.chat.type == "private":
        return True
    if reply is not None and reply.from_ is not None and reply.from_.id == bot.id:
        return True
    text, marks = message.text, message.entities
    if text is None:
        text, marks = message.caption or "", message.caption_entities
    units = b""
    mention = f"@{bot.name}".lower()
    for mark in marks:
        if mark.type == "text_mention":
            if mark.user is not None and mark.user.id == bot.id:
                return True
            continue
        if mark.type not in {"mention", "bot_command"}:
            continue
        # Offsets count UTF-16 units.
        units = units or text.encode("utf-16-le")
        marked = units[mark.offset * 2 : (mark.offset + mark.length) * 2]
        word = marked.decode("utf-16-le", errors="replace").lower()
        if word == mention or (mark.type == "bot_command" and word.endswith(mention)):
            return True
    return False


def _voice(message: _Message) -> Voice | None:
    sent = message.voice
    if sent is None:
        return None
    return Voice(sent.file_id, sent.duration, mime_type=sent.mime_type, size_bytes=sent.file_size)


def _document(message: _Message) -> Document | None:
    if message.photo:
        largest = max(message.photo, key=lambda size: size.width * size.height)
        return _named(largest, "photo.jpg")
    if message.document is not None:
        return _named(message.document, "file")
    if message.audio is not None:
        return _named(message.audio, "audio.mp3")
    if message.video is not None:
        return _named(message.video, "video.mp4")
    if message.video_note is not None:
        return _named(message.video_note, "video.mp4")
    return None


def _named(sent: _File, name: str) -> Document:
    return Document(
        sent.file_id, sent.file_name or name, mime_type=sent.mime_type, size_bytes=sent.file_size
    )
