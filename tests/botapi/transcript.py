"""A chat in plain text, as a person sees it: who said what, with its marks and buttons."""

from __future__ import annotations

from tests.botapi.chats import Chat, Message
from tests.botapi.text import units

AROUND = {
    "bold": "*",
    "italic": "_",
    "underline": "__",
    "strikethrough": "~",
    "spoiler": "||",
    "code": "`",
    "pre": "```",
    "blockquote": "«»",
    "expandable_blockquote": "«»",
}


def transcript(chat: Chat) -> str:
    """All that is in sight, oldest first; a wide left edge keeps the texts in shape."""
    name = chat.title or (chat.person.first_name if chat.person else "")
    lines = [f"== {chat.type} {chat.id} {name}".rstrip()]
    for message in chat.messages:
        lines.extend(_lines(message))
    return "\n".join(lines)


def _lines(message: Message) -> list[str]:
    who = message.sender.first_name if message.sender else "channel"
    notes = [
        f"in {message.topic.name}" if message.topic else "",
        f"to #{message.reply_to.id}" if message.reply_to else "",
        "silent" if message.silent else "",
        f"{len(message.versions)} versions" if len(message.versions) > 1 else "",
    ]
    said = ", ".join(note for note in notes if note)
    head = f"#{message.id} {who}" + (f" ({said})" if said else "") + ":"
    body = marked(message).split("\n") if message.text else []
    if "document" in message.fields:
        body.append(f"<{message.fields['document'].get('file_name', 'file')}>")
    body.extend(
        f"<{kind}>"
        for kind in message.fields
        if kind in {"voice", "photo"} or kind.startswith("forum_topic")
    )
    body.extend(" ".join(f"[{label}]" for label in row) for row in message.buttons)
    body.extend(
        f"{press.by} pressed {press.data}" + (f": {press.answer.text}" if press.answer else "")
        for press in message.presses
    )
    return [head, *(f"    {line}".rstrip() for line in body)]


def marked(message: Message) -> str:
    """The text with signs where something is marked."""
    signs: dict[int, list[str]] = {}
    for entity in message.entities:
        kind, start = entity["type"], entity["offset"]
        end = start + entity["length"]
        if kind == "text_link":
            opening, closing = "[", f"]({entity['url']})"
        else:
            sign = AROUND.get(kind, "")
            opening, closing = (sign[0], sign[1]) if sign == "«»" else (sign, sign)
        signs.setdefault(start, []).append(opening)
        signs.setdefault(end, []).insert(0, closing)
    pieces: list[str] = []
    at = 0
    for character in message.text:
        pieces.extend(signs.get(at, ()))
        pieces.append(character)
        at += units(character)
    pieces.extend(signs.get(at, ()))
    return "".join(pieces)
