"""Text and entities as Telegram keeps them: cleaned, trimmed, measured in UTF-16 units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.botapi.refusal import bad_request

Entity = dict[str, Any]

SENT_KINDS = frozenset({
    "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold",
    "italic", "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote",
    "code", "pre", "text_link", "text_mention", "custom_emoji", "date_time",
})  # fmt: skip
QUOTES = frozenset({"blockquote", "expandable_blockquote"})
CODE = frozenset({"code", "pre"})
REQUIRED = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}
BELONGS_TO = {
    "url": "text_link",
    "user": "text_mention",
    "language": "pre",
    "custom_emoji_id": "custom_emoji",
    "unix_time": "date_time",
    "date_time_format": "date_time",
}

UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\u2028-\u202e\u0333\u033f\u030a]")
SPACE = " \n"
MOST_ENTITIES = 100
SCHEMES = frozenset({"http", "https", "tg", "ton", "tonsite", "mailto", "tel"})


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text and what is marked in it."""

    text: str
    entities: tuple[Entity, ...] = ()


def units(text: str) -> int:
    """The length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def cut(text: str, offset: int, length: int) -> str:
    """A stretch of a text, given in UTF-16 units."""
    data = text.encode("utf-16-le")[2 * offset : 2 * (offset + length)]
    return data.decode("utf-16-le", "replace")


def read_text(text: str, entities: Sequence[Entity] = ()) -> Formatted:
    """What Telegram makes of a text: the whole of it is refused, or it is kept like this."""
    wide = text.encode("utf-16-le")
    for entity in entities:
        _check_entity(entity, wide)
    ordered = sorted(entities, key=lambda one: (one["offset"], -one["length"]))
    _check_nesting(ordered)
    text, ordered = _clean(text, ordered[:MOST_ENTITIES])
    return _trim(text, ordered)


def _check_entity(entity: Entity, wide: bytes) -> None:
    kind, offset, length = entity["type"], entity["offset"], entity["length"]
    if kind not in SENT_KINDS:
        raise bad_request("can't parse MessageEntity: Unsupported type specified")
    wanted = REQUIRED.get(kind)
    if wanted and wanted not in entity:
        raise bad_request(f"can't parse MessageEntity: Can't find field \"{wanted}\"")
    for name, owner in BELONGS_TO.items():
        if name in entity and kind != owner:
            raise bad_request(f'can\'t parse MessageEntity: field "{name}" is for {owner} only')
    if offset < 0:
        raise bad_request(f"receive an entity with incorrect offset {offset}")
    if length <= 0:
        raise bad_request(f"receive an entity with incorrect length {length}")
    if offset >= len(wide) // 2:
        raise bad_request(f"entity begins after the end of the text at UTF-16 offset {offset}")
    if offset + length > len(wide) // 2:
        raise _ends_late(entity)
    at_byte = _cuts_a_pair(wide, offset)
    if at_byte:
        raise bad_request(f"entity begins in a middle of a UTF-16 symbol at byte offset {at_byte}")
    at_byte = _cuts_a_pair(wide, offset + length)
    if at_byte:
        raise bad_request(
            f"entity beginning at UTF-16 offset {offset} "
            f"ends in a middle of a UTF-16 symbol at byte offset {at_byte}"
        )
    problem = url_problem(entity["url"]) if kind == "text_link" else None
    if problem:
        raise bad_request(f"entity URL '{entity['url']}' is invalid: {problem}")


def _cuts_a_pair(wide: bytes, offset: int) -> int:
    """The byte after the symbol that has the offset in its middle; 0 if none has."""
    if 2 * offset < len(wide) and 0xDC <= wide[2 * offset + 1] <= 0xDF:
        return len(wide[: 2 * offset + 2].decode("utf-16-le").encode())
    return 0


def url_problem(url: str) -> str | None:
    """What Telegram has against an address, if anything."""
    if not url:
        return "URL host is empty"
    scheme, colon, _ = url.partition(":")
    if colon and scheme.isalnum() and scheme.lower() not in SCHEMES:
        return "Unsupported URL protocol"
    return None if colon and re.fullmatch(r"\S+", url) else "Wrong HTTP URL"


def _ends_late(entity: Entity) -> Exception:
    return bad_request(
        f"entity beginning at UTF-16 offset {entity['offset']} ends after the end of the text "
        f"at UTF-16 offset {entity['offset'] + entity['length']}"
    )


def _check_nesting(ordered: Sequence[Entity]) -> None:
    open_: list[Entity] = []
    for entity in ordered:
        while open_ and _end(open_[-1]) <= entity["offset"]:
            open_.pop()
        if open_ and _end(open_[-1]) < _end(entity):
            # Telegram takes the end of the outer one for the end of the text.
            raise _ends_late(entity)
        for outer in open_:
            _check_inside(outer["type"], entity["type"])
        open_.append(entity)


def _check_inside(outer: str, inner: str) -> None:
    """Telegram drops one of the two without a word, so what was meant would be lost."""
    if outer in CODE or (inner in CODE and outer not in QUOTES):
        raise bad_request(f"can't parse entities: {inner} and {outer} can't be nested")
    if outer in QUOTES and inner in QUOTES:
        raise bad_request("can't parse entities: blockquotes can't be nested")
    if outer == inner == "text_link":
        raise bad_request("can't parse entities: links can't be nested")


def _end(entity: Entity) -> int:
    return entity["offset"] + entity["length"]


def _clean(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Control characters become blanks; what sets the direction of writing or is \\r goes."""
    if not UNSEEN.search(text):
        return text, entities
    gone = [
        units(text[: found.start()])
        for found in UNSEEN.finditer(text)
        if found[0] == "\r" or found[0] > "\x1f"
    ]
    moved: list[Entity] = []
    for entity in entities:
        start = entity["offset"] - sum(at < entity["offset"] for at in gone)
        end = _end(entity) - sum(at < _end(entity) for at in gone)
        if end > start:
            moved.append({**entity, "offset": start, "length": end - start})
    text = UNSEEN.sub(lambda found: " " if found[0] < "\x20" and found[0] != "\r" else "", text)
    return text, moved


def _trim(text: str, entities: list[Entity]) -> Formatted:
    """Blanks at the end go, and blanks at the beginning as far as nothing is marked there."""
    text = text.rstrip(SPACE)
    size = units(text)
    kept = [
        {**entity, "length": min(entity["length"], size - entity["offset"])}
        for entity in entities
        if entity["offset"] < size
    ]
    lead = len(text) - len(text.lstrip(SPACE))
    lead = min([lead, *(entity["offset"] for entity in kept)])
    return Formatted(
        text[lead:], tuple({**entity, "offset": entity["offset"] - lead} for entity in kept)
    )


SEEN_IN_TEXT = re.compile(
    r"(?P<url>https?://[^\s<>]+[^\s<>.,;:!?)'\"])"
    r"|(?<![\w/@])(?P<bot_command>/\w{1,32}(?:@\w{3,32})?)(?![\w/])"
    r"|(?<![\w@/])(?P<mention>@[A-Za-z]\w{2,31})(?!\w)"
    r"|(?<![\w#/])(?P<hashtag>\#\w*[^\W\d]\w*)",
    re.ASCII,
)


def see_entities(text: str) -> tuple[Entity, ...]:
    """What a client marks by itself in what a person writes."""
    return tuple(
        {
            "type": found.lastgroup,
            "offset": units(text[: found.start()]),
            "length": units(found[0]),
        }
        for found in SEEN_IN_TEXT.finditer(text)
    )
