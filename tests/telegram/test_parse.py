from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import Document, Edited, IncomingMessage, Press, Voice
from takopi.routing.authorize import Envelope
from takopi.telegram.parse import Bot, chat_regained, envelope, parse, update_id

BOT = Bot(123, "takopi_bot")
ADA: dict[str, Any] = {"id": 7, "is_bot": False, "first_name": "Ada"}
ME: dict[str, Any] = {"id": 123, "is_bot": True, "first_name": "takopi"}
PRIVATE: dict[str, Any] = {"id": 7, "type": "private", "first_name": "Ada"}
GROUP: dict[str, Any] = {"id": -1005, "type": "supergroup", "title": "Team", "is_forum": True}


def raw(**update: Any) -> bytes:
    return json.dumps({"update_id": 900, **update}).encode()


def said(text: str | None = "hello", **fields: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"message_id": 20, "date": 1700000000, "from": ADA, "chat": PRIVATE}
    if text is not None:
        message["text"] = text
    return {**message, **fields}


def read(**fields: Any) -> IncomingMessage:
    got = parse(raw(message=said(**fields)), BOT)
    assert isinstance(got, IncomingMessage)
    return got


def test_a_message_has_every_field_of_the_incoming_message() -> None:
    got = read(reply_to_message=said("earlier", message_id=11))

    assert got == IncomingMessage(
        transport="telegram",
        chat_id=7,
        message_id=20,
        text="hello",
        reply_to_message_id=11,
        reply_to_text="earlier",
        sender_id=7,
        raw=None,
        chat_type="private",
        update_id=900,
        sent_ms=1700000000000,
        to_bot=True,
    )
    assert got.ref == MessageRef("telegram", 7, 20)
    assert got.reply_ref == MessageRef("telegram", 7, 11)


def test_an_edit_is_the_message_as_it_reads_now() -> None:
    got = parse(raw(edited_message=said("better", edit_date=1700000050)), BOT)

    assert isinstance(got, Edited)
    assert (got.message.text, got.message.sent_ms) == ("better", 1700000000000)


def test_a_press_names_its_message_its_topic_and_its_data() -> None:
    under = said("card", chat=GROUP, message_thread_id=5, is_topic_message=True)
    got = parse(
        raw(callback_query={"id": "99", "from": ADA, "message": under, "data": "rn:x"}), BOT
    )

    assert got == Press("99", Scope("telegram", -1005, 5), message_id=20, sender_id=7, data="rn:x")


def test_a_press_under_an_old_message_is_a_press_all_the_same() -> None:
    old = {"chat": PRIVATE, "message_id": 3, "date": 0}
    got = parse(raw(callback_query={"id": "99", "from": ADA, "message": old, "data": "x"}), BOT)

    assert got == Press("99", Scope("telegram", 7), message_id=3, sender_id=7, data="x")


@pytest.mark.parametrize(
    "press",
    [
        {"id": "99", "from": ADA, "data": "x"},
        {"id": "99", "from": ADA, "message": said(), "game_short_name": "x"},
    ],
)
def test_a_press_without_message_or_data_is_nothing(press: dict[str, Any]) -> None:
    assert parse(raw(callback_query=press), BOT) is None


def test_a_caption_is_the_text() -> None:
    got = read(text=None, caption="look", document={"file_id": "f1", "file_unique_id": "u"})

    assert (got.text, got.documents) == ("look", (Document("f1", "file"),))


def test_the_text_of_a_reply_may_be_a_caption_too() -> None:
    assert read(reply_to_message=said(None, caption="a picture")).reply_to_text == "a picture"
    assert read(reply_to_message=said(None)).reply_to_text is None


def test_a_quote_is_the_part_that_was_chosen() -> None:
    got = read(
        reply_to_message=said("one two three"),
        quote={"text": "two", "position": 4, "is_manual": True},
    )

    assert (got.quote, got.reply_to_text) == ("two", "one two three")


def test_a_voice_note_can_be_fetched() -> None:
    voice = {"file_id": "v", "file_unique_id": "u", "duration": 4, "mime_type": "audio/ogg"}
    got = read(text=None, voice={**voice, "file_size": 900})

    assert (got.text, got.voice) == ("", Voice("v", 4, mime_type="audio/ogg", size_bytes=900))


def test_a_photo_is_its_largest_size() -> None:
    sizes = [
        {"file_id": "s", "file_unique_id": "u", "width": 90, "height": 60},
        {"file_id": "l", "file_unique_id": "u", "width": 1280, "height": 800, "file_size": 5},
        {"file_id": "m", "file_unique_id": "u", "width": 320, "height": 200},
    ]
    got = read(text=None, photo=sizes, media_group_id="1300")

    assert got.documents == (Document("l", "photo.jpg", size_bytes=5),)
    assert got.album == "1300"


@pytest.mark.parametrize(
    ("kind", "name"),
    [("audio", "audio.mp3"), ("video", "video.mp4"), ("video_note", "video.mp4")],
)
def test_recordings_are_files(kind: str, name: str) -> None:
    got = read(text=None, **{kind: {"file_id": "f", "file_unique_id": "u", "duration": 3}})

    assert got.documents == (Document("f", name),)


def test_a_topic_is_named_for_messages_of_a_topic_only() -> None:
    topic = read(chat=GROUP, message_thread_id=5, is_topic_message=True)
    replies = read(chat=GROUP, message_thread_id=5)

    assert (topic.thread_id, topic.scope) == (5, Scope("telegram", -1005, 5))
    assert replies.thread_id is None


def test_the_reply_that_every_message_of_a_topic_makes_is_none() -> None:
    root = {
        "message_id": 5,
        "date": 1,
        "from": ME,
        "chat": GROUP,
        "forum_topic_created": {"name": "x", "icon_color": 1},
    }
    in_topic = {"chat": GROUP, "message_thread_id": 5, "is_topic_message": True}
    implicit = read(**in_topic, reply_to_message=root)
    explicit = read(**in_topic, reply_to_message=said("y", message_id=8, chat=GROUP))

    assert (implicit.reply_to_message_id, implicit.reply_to_text) == (None, None)
    assert not implicit.to_bot
    assert explicit.reply_to_message_id == 8


def entity(kind: str, offset: int, length: int, **more: Any) -> list[dict[str, Any]]:
    return [{"type": kind, "offset": offset, "length": length, **more}]


@pytest.mark.parametrize(
    ("fields", "to_bot"),
    [
        ({}, False),
        ({"text": "@Takopi_Bot go", "entities": entity("mention", 0, 11)}, True),
        ({"text": "😀 @takopi_bot", "entities": entity("mention", 3, 11)}, True),
        ({"text": "@takopi_bot", "entities": []}, False),
        ({"text": "@takopi_bot2", "entities": entity("mention", 0, 12)}, False),
        ({"text": "/run@takopi_bot", "entities": entity("bot_command", 0, 15)}, True),
        ({"text": "/run@other_bot", "entities": entity("bot_command", 0, 14)}, False),
        ({"text": "/run", "entities": entity("bot_command", 0, 4)}, False),
        ({"text": "you", "entities": entity("text_mention", 0, 3, user=ME)}, True),
        ({"text": "you", "entities": entity("text_mention", 0, 3, user=ADA)}, False),
        ({"text": "x", "entities": entity("mention", 900, 11)}, False),
        ({"reply_to_message": said("answer", **{"from": ME})}, True),
        ({"reply_to_message": said("chatter")}, False),
        (
            {
                "text": None,
                "caption": "@takopi_bot",
                "caption_entities": entity("mention", 0, 11),
                "photo": [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}],
            },
            True,
        ),
    ],
)
def test_in_a_group_the_bot_is_meant_when_named_or_replied_to(
    fields: dict[str, Any], to_bot: bool
) -> None:
    assert read(chat=GROUP, **fields).to_bot is to_bot


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"message": said(None, new_chat_members=[ADA])},
        {"message": said(None, forum_topic_created={"name": "x", "icon_color": 1})},
        {"message": said(None, migrate_to_chat_id=-1006)},
        {"message": said(None, sticker={"file_id": "f"})},
        {"message": said(chat={"id": 7, "type": "planet"})},
        {"channel_post": said(chat={"id": -1, "type": "channel"})},
        {"message_reaction": {"chat": GROUP}},
        {"poll": {"id": "1"}},
        {"message": "hello"},
        {"message": said(message_id=2**60)},
    ],
)
def test_what_nobody_can_act_upon_is_nothing(update: dict[str, Any]) -> None:
    assert parse(raw(**update), BOT) is None


def test_unknown_fields_change_nothing() -> None:
    plain = parse(raw(message=said()), BOT)
    known = parse(raw(message=said(glow={"x": [1]}, effect_id="7"), mood="good"), BOT)

    assert known == plain


@pytest.mark.parametrize(
    ("update", "signed"),
    [
        ({"message": said()}, Envelope(7, 7)),
        ({"edited_message": said(chat=GROUP)}, Envelope(7, -1005)),
        ({"message": said(chat=GROUP, sender_chat=GROUP)}, Envelope(None, -1005)),
        ({"message": {"chat": GROUP}}, Envelope(None, -1005)),
        ({"callback_query": {"id": "1", "from": ADA, "message": said()}}, Envelope(7, 7)),
        ({"callback_query": {"id": "1", "from": ADA}}, Envelope(7, None)),
        ({"channel_post": said()}, None),
        ({"my_chat_member": {"chat": GROUP, "from": ADA}}, None),
        ({"message": {"from": ADA}}, None),
    ],
)
def test_the_envelope_is_sender_and_chat(update: dict[str, Any], signed: Envelope | None) -> None:
    assert envelope(raw(**update)) == signed


def test_the_envelope_is_read_without_what_is_inside() -> None:
    broken_inside = raw(message={"chat": PRIVATE, "from": ADA, "text": {"not": "text"}})

    assert envelope(broken_inside) == Envelope(7, 7)
    assert parse(broken_inside, BOT) is None


@pytest.mark.parametrize(
    ("status", "chat_id"),
    [("member", 7), ("administrator", 7), ("left", None), ("kicked", None)],
)
def test_a_chat_is_regained_when_the_bot_is_in_it_again(status: str, chat_id: int | None) -> None:
    member = {"chat": PRIVATE, "from": ADA, "new_chat_member": {"status": status}}

    assert chat_regained(raw(my_chat_member=member)) == chat_id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS: st.SearchStrategy[str] = st.sampled_from([
    "message_id",
    "date",
    "chat",
    "from",
    "message_thread_id",
    "is_topic_message",
    "reply_to_message",
    "quote",
    "text",
    "caption",
    "entities",
    "voice",
    "document",
    "photo",
    "media_group_id",
])


def oddly_said(odd: Mapping[str, object]) -> dict[str, Any]:
    return {**said(), **odd}


MESSAGES = st.dictionaries(KEYS, JSON).map(oddly_said)


@given(
    st.dictionaries(
        st.sampled_from(["update_id", "message", "edited_message", "callback_query"]),
        MESSAGES | JSON,
    )
)
def test_any_json_is_read_or_ignored(update: dict[str, Any]) -> None:
    data = json.dumps({"update_id": 5, **update}).encode()

    for read_one in (update_id, envelope, chat_regained):
        read_one(data)
    got = parse(data, BOT)
    assert got is None or isinstance(got, IncomingMessage | Edited | Press)


@given(st.binary())
def test_any_bytes_are_ignored(data: bytes) -> None:
    assert update_id(data) is None
    assert parse(data, BOT) is None
    assert envelope(data) is None


def test_json_of_any_depth_is_ignored() -> None:
    assert parse(b'{"update_id":1,"message":' + b"[" * 100_000, BOT) is None
