"""What a chat accepts, checked mark by mark, and texts to check it with."""

from __future__ import annotations

from hypothesis import strategies as st

from takopi.core.outgoing import Mark, Text
from takopi.present.units import is_inside_pair, length, widen

SYNTAX = (
    *(
        "*",
        "**",
        "_",
        "__",
        "~~",
        "`",
        "```\n",
        "~~~\n",
        "[",
        "](",
        "](http://x.y/z",
        ")",
        "![",
        "<",
    ),
    *(">", "> ", "- ", "* ", "1. ", "2) ", "# ", "### ", "\n", "\n\n", "  \n", "    ", "\t", "|"),
    *(
        "---\n",
        "|a|b|\n|-|:-:|\n",
        "|",
        "\\",
        "&amp;",
        "&#x1F600;",
        "[ ] ",
        "[x] ",
        "===\n",
        "\r\n",
    ),
    *("<b>", "<!--", "-->", "[a]: b\n", "![i](p.png)", "<http://a.b>", "***\n", "\x00", "\x0b"),
)
WORDS = ("word", "a", "I'm", "ä", "漢字", "😀", "👩‍👩‍👧", "🇩🇪", "e\u0301", " ", "\u00a0", "\u2003")

markdowns = st.one_of(
    st.lists(st.sampled_from(SYNTAX + WORDS), max_size=60).map("".join),
    st.lists(st.one_of(st.sampled_from(SYNTAX), st.text(max_size=5)), max_size=30).map("".join),
)


def covered(text: Text, mark: Mark) -> str:
    """The words under a mark."""
    encoded = text.text.encode("utf-16-le")
    return encoded[2 * mark.offset : 2 * (mark.offset + mark.length)].decode("utf-16-le")


def marked(text: Text, kind: str) -> list[str]:
    """The words under all marks of a kind."""
    return [covered(text, mark) for mark in text.marks if mark.kind == kind]


def is_valid(text: Text) -> bool:
    """True, or an assertion that says what a chat would not take."""
    text.text.encode()
    wide = widen(text.text)
    assert length(text.text) == len(wide)
    open_marks: list[Mark] = []
    before = Mark("quote", 0, len(wide))
    for mark in text.marks:
        assert mark.offset > before.offset or (
            mark.offset == before.offset and mark.length <= before.length
        ), "sorted"
        before = mark
        mark.extra.encode()
        end = mark.offset + mark.length
        assert 0 <= mark.offset < end <= len(wide), "in range"
        assert not is_inside_pair(wide, mark.offset), "a pair is cut"
        assert not is_inside_pair(wide, end), "a pair is cut"
        words = wide[mark.offset : end]
        assert words.strip(), "covers something"
        assert mark.kind == "pre" or words == words.strip(), "no spaces at its edges"
        open_marks = [outer for outer in open_marks if outer.offset + outer.length > mark.offset]
        for outer in open_marks:
            _assert_may_hold(outer, mark)
        open_marks.append(mark)
    return True


def _assert_may_hold(outer: Mark, inner: Mark) -> None:
    assert inner.offset + inner.length <= outer.offset + outer.length, "nested"
    assert outer.kind != inner.kind, "not inside its like"
    assert outer.kind not in {"code", "pre"}, "code holds nothing"
    if inner.kind in {"code", "pre"}:
        assert outer.kind == "quote", "code is inside a quote at most"
    assert inner.kind != "quote" or outer.kind in {"bold", "italic", "underline"}, (
        "quotes are outer"
    )
