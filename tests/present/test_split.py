import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from takopi.core.outgoing import Mark, Text
from takopi.present.compose import EMPTY, bold, code, join, plain, pre
from takopi.present.footer import footer
from takopi.present.markdown import render
from takopi.present.split import MAX_MARKS, parts, split
from takopi.present.units import length
from tests.present.validity import is_valid, markdowns, marked

FOOTER = footer("ctx: z80 @ feat/name", "claude --resume abc")


def squeeze(text: str) -> str:
    return "".join(text.split())


@settings(deadline=None, max_examples=300)
@given(markdowns, st.integers(2, 60))
def test_parts_joined_are_the_text_but_for_spaces_at_the_cuts(
    markdown: str, max_units: int
) -> None:
    text = render(markdown)
    pieces = split(text, max_units)

    assert squeeze("".join(piece.text for piece in pieces)) == squeeze(text.text)
    assert all(length(piece.text) <= max_units for piece in pieces)
    assert all(piece.text.strip() for piece in pieces) or not text.text
    assert all(is_valid(piece) for piece in pieces)


@settings(deadline=None, max_examples=300)
@given(markdowns, st.integers(2, 60))
def test_every_mark_goes_on_through_the_cuts(markdown: str, max_units: int) -> None:
    text = render(markdown)
    pieces = split(text, max_units)

    for kind in ("bold", "italic", "code", "pre", "link", "quote"):
        whole = squeeze("".join(marked(text, kind)))
        assert squeeze("".join("".join(marked(piece, kind)) for piece in pieces)) == whole


@settings(deadline=None, max_examples=300)
@given(markdowns, st.integers(150, 400))
def test_every_part_ends_with_the_footer_and_fits(markdown: str, max_units: int) -> None:
    body = render(markdown * 5)
    assume(body.text)
    pieces = parts(body, FOOTER, max_units, tail=plain("opus · $0.04"))

    total = len(pieces)
    for index, piece in enumerate(pieces, 1):
        assert length(piece.text) <= max_units
        assert is_valid(piece)
        assert piece.text.endswith(FOOTER.text)
        assert (f"({index}/{total})\n" in piece.text) == (total > 1)
    assert [("opus · $0.04\n" in piece.text) for piece in pieces] == [False] * (total - 1) + [True]
    said = "".join(
        re.sub(
            rf"\n\n(opus · \$0\.04\n)?(\({index}/{total}\)\n)?{re.escape(FOOTER.text)}$", "", p.text
        )
        for index, p in enumerate(pieces, 1)
    )
    assert squeeze(said) == squeeze(body.text)


def test_a_short_text_is_one_part_without_a_number() -> None:
    (only,) = parts(plain("hello"), FOOTER, 4096)

    assert only.text == "hello\n\nctx: z80 @ feat/name\nclaude --resume abc"
    assert marked(only, "code") == ["ctx: z80 @ feat/name", "claude --resume abc"]


def test_parts_are_numbered_above_the_footer() -> None:
    body = "\n\n".join(f"paragraph {number} " + "x" * 60 for number in range(3))
    first, second, third = parts(plain(body), FOOTER, 140)

    assert first.text.startswith("paragraph 0 x")
    assert first.text.endswith("x\n\n(1/3)\nctx: z80 @ feat/name\nclaude --resume abc")
    assert second.text.startswith("paragraph 1 x")
    assert third.text.endswith("x\n\n(3/3)\nctx: z80 @ feat/name\nclaude --resume abc")


def test_a_cut_is_between_paragraphs_where_it_can_be() -> None:
    text = plain("one one\none\n\ntwo two two two")

    assert [piece.text for piece in split(text, 22)] == ["one one\none", "two two two two"]


def test_a_cut_is_between_lines_then_words_then_characters() -> None:
    assert [piece.text for piece in split(plain("aaa bb\nccc ddd"), 10)] == ["aaa bb", "ccc ddd"]
    assert [piece.text for piece in split(plain("aaa bb ccc ddd"), 10)] == ["aaa bb ccc", "ddd"]
    assert [piece.text for piece in split(plain("a" * 14), 10)] == ["a" * 10, "a" * 4]


def test_a_paragraph_that_leaves_a_message_nearly_empty_is_not_kept_apart() -> None:
    text = plain("Hi.\n\n" + "word " * 40)
    first, *_ = split(text, 100)

    assert len(first.text) > 90


def test_a_code_block_that_fits_is_not_cut() -> None:
    text = join(["intro intro intro", pre("line one\n\nline two", "py")], "\n\n")
    first, second = split(text, 30)

    assert first.text == "intro intro intro"
    assert second == Text("line one\n\nline two", (Mark("pre", 0, 18, "py"),))


def test_a_code_block_moves_to_the_next_message_whole() -> None:
    text = join(["intro intro intro", pre("line one\nline two", "py")], "\n")

    assert [piece.text for piece in split(text, 30)] == ["intro intro intro", "line one\nline two"]


def test_what_follows_a_code_block_can_be_parted_from_it() -> None:
    text = join([pre("line one\n\nline two", "py"), "after " * 4], "\n")

    assert [piece.text for piece in split(text, 25)] == [
        "line one\n\nline two",
        "after after after after",
    ]


def test_a_code_block_that_is_cut_goes_on_with_its_language_and_indentation() -> None:
    text = pre("if x:\n    first()\n    second()\n    third()", "python")
    pieces = split(text, 20)

    assert [piece.text for piece in pieces] == [
        "if x:\n    first()",
        "    second()",
        "    third()",
    ]
    assert all(piece.marks == (Mark("pre", 0, len(piece.text), "python"),) for piece in pieces)


def test_an_indented_code_block_keeps_its_first_line_at_a_cut() -> None:
    text = join(["before before", pre("    indented = 1")], "\n\n")

    assert [piece.text for piece in split(text, 18)] == ["before before", "    indented = 1"]


def test_a_style_that_is_cut_goes_on() -> None:
    text = join(["aaaa ", bold("bbbb bbbb bbbb"), " ", code("c")])
    pieces = split(text, 10)

    assert [marked(piece, "bold") for piece in pieces] == [["bbbb"], ["bbbb bbbb"], []]
    assert marked(pieces[-1], "code") == ["c"]


@pytest.mark.parametrize("sign", ["😀", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "✔\ufe0f"])
@pytest.mark.parametrize("max_units", [29, 30, 31, 32, 33])
def test_what_is_shown_as_one_is_not_cut(sign: str, max_units: int) -> None:
    for piece in split(plain("x" + sign * 40), max_units):
        assert not piece.text.removeprefix("x").replace(sign, "")


def test_joined_characters_without_end_are_cut_all_the_same() -> None:
    pieces = split(plain("a" + "\u0301" * 500), 100)

    assert "".join(piece.text for piece in pieces) == "a" + "\u0301" * 500
    assert all(length(piece.text) <= 100 for piece in pieces)


@pytest.mark.parametrize("max_units", [97, 98, 99, 100])
def test_a_pair_is_not_cut_even_where_all_is_joined(max_units: int) -> None:
    endless = "😀\u200d" * 200

    assert "".join(piece.text for piece in split(plain(endless), max_units)) == endless


def test_spaces_alone_make_no_message_of_their_own() -> None:
    text = join(["start", pre("x" + "\n" * 500 + "y")], "\n")

    assert [piece.text for piece in split(text, 50)] == ["start\nx", "y"]
    spaced = split(pre("x" + " \n" * 500 + "y"), 50)
    assert [piece.text.strip() for piece in spaced] == ["x", "y"]
    assert [piece.text for piece in split(plain("a" * 8 + " " * 30), 10)] == ["a" * 8]


def test_a_footer_that_leaves_no_room_is_said_once_at_the_end() -> None:
    long_footer = footer(None, "resume " + "x" * 80)
    pieces = parts(plain("word " * 40), long_footer, 100)

    assert all(length(piece.text) <= 100 for piece in pieces)
    assert squeeze("".join(piece.text for piece in pieces)) == squeeze(
        "word " * 40 + long_footer.text
    )


def test_marks_of_the_footer_are_among_those_that_a_chat_takes() -> None:
    body = join([code("x") for _ in range(300)], " ")

    for max_units in (4096, 400):
        for piece in parts(body, FOOTER, max_units):
            assert len(piece.marks) <= MAX_MARKS
            assert marked(piece, "code")[-2:] == FOOTER.text.split("\n")


def test_an_empty_body_is_the_footer() -> None:
    assert parts(EMPTY, FOOTER, 4096) == (FOOTER,)
    assert split(EMPTY, 10) == (EMPTY,)


def test_a_message_without_room_for_every_character_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold every character"):
        split(plain("abc"), 1)


def test_ten_million_characters_are_split_whole() -> None:
    text = plain("word " * 2_000_000)

    assert sum(piece.text.count("word") for piece in split(text, 4096)) == 2_000_000
