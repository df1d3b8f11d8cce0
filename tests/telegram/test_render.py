from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from takopi.core.outgoing import Button, Mark, Text
from takopi.telegram.render import caption, entities, keyboard, repeated


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_marks_go_by_the_names_of_the_bot_api() -> None:
    text = Text(
        "x" * 9,
        (
            Mark("bold", 0, 1),
            Mark("italic", 1, 1),
            Mark("underline", 2, 1),
            Mark("strikethrough", 3, 1),
            Mark("spoiler", 4, 1),
            Mark("code", 5, 1),
            Mark("pre", 6, 1, "python"),
            Mark("link", 7, 1, "https://example.org"),
            Mark("quote", 8, 1),
        ),
    )

    shown = entities(text) or []
    assert [entity["type"] for entity in shown] == [
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "code",
        "pre",
        "text_link",
        "blockquote",
    ]
    assert shown[6] == {"type": "pre", "offset": 6, "length": 1, "language": "python"}
    assert shown[7]["url"] == "https://example.org"


def test_no_marks_and_no_buttons_are_left_out() -> None:
    assert entities(Text("x")) is None
    assert keyboard(()) is None
    assert keyboard(((),)) is None


def test_buttons_keep_their_rows() -> None:
    rows = ((Button("A", "rn:1"), Button("B", "rn:2")), (), (Button("C", "rn:3"),))

    assert keyboard(rows) == {
        "inline_keyboard": [
            [{"text": "A", "callback_data": "rn:1"}, {"text": "B", "callback_data": "rn:2"}],
            [{"text": "C", "callback_data": "rn:3"}],
        ]
    }


def test_a_repeated_text_says_so_and_keeps_its_marks_in_place() -> None:
    again = repeated(Text("done now", (Mark("bold", 5, 3),)))

    assert again.text == "(repeated)\ndone now"
    assert again.marks == (Mark("bold", 16, 3),)


def test_a_caption_is_not_cut_within_a_character() -> None:
    shown = caption(Text("😀" * 600, (Mark("bold", 1000, 200),)))

    assert shown == Text("😀" * 511 + "…", (Mark("bold", 1000, 22),))


@given(st.text(alphabet=st.sampled_from("ab\n😀é"), max_size=1200), st.integers(0, 1200))
def test_a_caption_holds_at_most_what_telegram_takes(text: str, offset: int) -> None:
    marks = (Mark("bold", offset, 5),) if offset + 5 <= units(text) else ()
    shown = caption(Text(text, marks))

    assert units(shown.text) <= 1024
    assert shown.text == text or text.startswith(shown.text.removesuffix("…"))
    assert all(m.length > 0 and m.offset + m.length <= units(shown.text) for m in shown.marks)
