"""Which messages are parts of one that a chat has split, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from takopi.core.messages import IncomingMessage

LONG_UNITS = 4000
"""A text from this length on may be the beginning of a longer one."""

FULL_UNITS = 4096
"""A text of this length was cut inside of a line or a word; a longer one was not cut at all."""

APART_MS = 5000
"""What was sent longer after a text is no part of it, also where both come in together."""

ALBUM_PARTS = 10
MOST_PARTS = 50


def may_go_on(message: IncomingMessage) -> bool:
    """Whether more of what was sent as one may follow."""
    return message.album is not None or _is_long(message)


def belongs(first: IncomingMessage, other: IncomingMessage, *, last: IncomingMessage) -> bool:
    """Whether the other goes on with what the first began; all are of one sender and scope.

    `last` is the last part so far, which may be the first.
    """
    if first.album is not None or other.album is not None:
        return first.album == other.album
    replies_elsewhere = other.reply_to_message_id not in {None, first.reply_to_message_id}
    return _is_text(other) and not replies_elsewhere and not _is_later(last, other)


def is_whole(last: IncomingMessage, parts: int) -> bool:
    """Whether nothing more can follow the last of so many parts."""
    if last.album is not None:
        return parts >= ALBUM_PARTS
    return parts >= MOST_PARTS or not _is_long(last)


def join(first: IncomingMessage, rest: Sequence[IncomingMessage]) -> IncomingMessage:
    """All parts as one message, which stands where the first one stands."""
    if not rest:
        return first
    every = (first, *rest)
    replying = next((part for part in every if part.reply_to_message_id is not None), first)
    return replace(
        first,
        text=_captions(every) if first.album is not None else _text(every),
        documents=tuple(document for part in every for document in part.documents),
        reply_to_message_id=replying.reply_to_message_id,
        reply_to_text=replying.reply_to_text,
        quote=replying.quote,
        to_bot=any(part.to_bot for part in every),
        joined=tuple(part.message_id for part in rest),
    )


def _captions(parts: Sequence[IncomingMessage]) -> str:
    return "\n".join(part.text for part in parts if part.text.strip())


def _text(parts: Sequence[IncomingMessage]) -> str:
    text = ""
    for part in parts:
        text += part.text
        if part is not parts[-1] and _units(part.text) < FULL_UNITS and text[-1:] != "\n":
            # Clients cut at the end of a line, and chats take line ends off the ends of a text.
            text += "\n"
    return text


def _is_later(last: IncomingMessage, other: IncomingMessage) -> bool:
    if last.sent_ms is None or other.sent_ms is None:
        return False
    return other.sent_ms - last.sent_ms > APART_MS


def _is_text(message: IncomingMessage) -> bool:
    return not message.documents and message.voice is None and message.album is None


def _is_long(message: IncomingMessage) -> bool:
    return _is_text(message) and LONG_UNITS <= _units(message.text) <= FULL_UNITS


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
