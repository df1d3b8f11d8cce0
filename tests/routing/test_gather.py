from __future__ import annotations

from dataclasses import replace

import pytest

from takopi.core.messages import Document, IncomingMessage, Voice
from takopi.routing.gather import belongs, is_whole, join, may_go_on

FILE = (Document("f1", "a.txt"),)


def said(text: str, number: int = 1, *, reply_to: int | None = None) -> IncomingMessage:
    return IncomingMessage("telegram", 7, number, text, reply_to, None, 7)


def of_album(number: int, caption: str = "", *, album: str = "g1") -> IncomingMessage:
    return replace(said(caption, number), album=album, documents=(Document(f"f{number}", "x"),))


@pytest.mark.parametrize(
    ("message", "goes_on"),
    [
        (said("x" * 3999), False),
        (said("x" * 4000), True),
        (said("😀" * 2000), True),
        (said("😀" * 1999), False),
        (said("x" * 4096), True),
        (said("x" * 4097), False),
        (replace(said("x" * 4000), documents=FILE), False),
        (replace(said("x" * 4000), voice=Voice("v", 3)), False),
        (of_album(1), True),
    ],
)
def test_only_texts_of_4000_units_and_albums_may_go_on(
    message: IncomingMessage, goes_on: bool
) -> None:
    assert may_go_on(message) is goes_on


@pytest.mark.parametrize(
    ("first", "other", "belong"),
    [
        (said("a"), said("b", 2), True),
        (said("a", reply_to=5), said("b", 2, reply_to=5), True),
        (said("a", reply_to=5), said("b", 2), True),
        (said("a", reply_to=5), said("b", 2, reply_to=6), False),
        (said("a"), replace(said("b", 2), documents=FILE), False),
        (said("a"), replace(said("", 2), voice=Voice("v", 3)), False),
        (said("a"), of_album(2), False),
        (of_album(1), of_album(2), True),
        (of_album(1), of_album(2, album="g2"), False),
        (of_album(1), said("b", 2), False),
    ],
)
def test_parts_are_told_from_other_messages(
    first: IncomingMessage, other: IncomingMessage, belong: bool
) -> None:
    assert belongs(first, other, last=first) is belong


@pytest.mark.parametrize(
    ("last_ms", "sent_ms", "belong"),
    [
        (60_000, 60_000, True),
        (60_000, 65_000, True),
        (60_000, 66_000, False),
        (None, 66_000, True),
        (60_000, None, True),
    ],
)
def test_text_goes_on_with_one_that_was_sent_moments_before(
    last_ms: int | None, sent_ms: int | None, belong: bool
) -> None:
    first, last = replace(said("a"), sent_ms=1000), replace(said("b", 2), sent_ms=last_ms)
    assert belongs(first, replace(said("c", 3), sent_ms=sent_ms), last=last) is belong


def test_album_is_one_however_long_it_took() -> None:
    first, other = replace(of_album(1), sent_ms=0), replace(of_album(2), sent_ms=600_000)
    assert belongs(first, other, last=first)


def test_last_part_is_short_and_an_album_has_ten() -> None:
    assert is_whole(said("the end"), 2)
    assert not is_whole(said("x" * 4000), 2)
    assert is_whole(said("x" * 4000), 50)
    assert not is_whole(of_album(9), 9)
    assert is_whole(of_album(10), 10)


def test_text_is_joined_at_line_ends_and_inside_words() -> None:
    parts = [said("a" * 4096, 2), said("b" * 4000, 3), said("c", 4)]
    whole = join(said("x" * 4090 + "\n", 1), parts)
    assert whole.text == "x" * 4090 + "\n" + "a" * 4096 + "b" * 4000 + "\n" + "c"
    assert (whole.message_id, whole.joined) == (1, (2, 3, 4))


def test_album_has_all_files_all_captions_and_any_reply() -> None:
    last = replace(of_album(3, "second"), reply_to_message_id=9, reply_to_text="hi", to_bot=True)
    whole = join(replace(of_album(1, "first"), to_bot=False), [of_album(2, " "), last])
    assert whole.text == "first\nsecond"
    assert [document.file_id for document in whole.documents] == ["f1", "f2", "f3"]
    assert (whole.reply_to_message_id, whole.reply_to_text, whole.to_bot) == (9, "hi", True)


def test_message_alone_stays_as_it_is() -> None:
    message = said("x" * 4000)
    assert join(message, []) is message
