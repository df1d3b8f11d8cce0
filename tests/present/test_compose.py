from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.core.outgoing import Mark, MarkKind, Text
from takopi.present.compose import bold, code, italic, join, link, plain, pre, prose, stack
from takopi.present.footer import footer
from takopi.present.marks import settle, thin
from takopi.present.units import length
from tests.present.validity import covered, is_valid, marked

KINDS: tuple[MarkKind, ...] = ("bold", "italic", "strikethrough", "code", "pre", "link", "quote")


@st.composite
def nested_spans(draw: st.DrawFn) -> tuple[str, list[Mark]]:
    """A text and spans over it that nest like brackets."""
    text = ""
    spans: list[Mark] = []
    opened: list[tuple[MarkKind, int]] = []
    for step in draw(
        st.lists(st.sampled_from(("open", "close", "word")), min_size=10, max_size=40)
    ):
        if step == "open":
            kind = draw(st.sampled_from(KINDS))
            # Quotes are blocks: no style is around one.
            if kind != "quote" or all(outer == "quote" for outer, _ in opened):
                opened.append((kind, length(text)))
        elif step == "close" and opened:
            kind, start = opened.pop()
            spans.append(Mark(kind, start, length(text) - start))
        else:
            text += draw(st.sampled_from(("a", " ", "\n", "😀", "word ")))
    return text, spans


@settings(deadline=None, max_examples=400)
@given(nested_spans())
def test_any_nested_spans_become_marks_that_a_chat_accepts(
    given_spans: tuple[str, list[Mark]],
) -> None:
    text, spans = given_spans
    settled = settle(text, spans)

    assert settled.text == text.rstrip()
    assert is_valid(settled)


@given(nested_spans())
def test_what_is_settled_stays_as_it_is(given_spans: tuple[str, list[Mark]]) -> None:
    settled = settle(*given_spans)

    assert settle(settled.text, settled.marks) == settled


def test_pieces_keep_their_marks_when_they_are_joined() -> None:
    text = join(["😀 ", bold("one"), ", ", code("two"), " and ", link("three", "http://x.y")])

    assert text.text == "😀 one, two and three"
    assert [(mark.kind, covered(text, mark)) for mark in text.marks] == [
        ("bold", "one"),
        ("code", "two"),
        ("link", "three"),
    ]
    assert is_valid(text)


def test_a_style_goes_around_code() -> None:
    text = bold(join(["run ", code("npm test"), " now"]))

    assert marked(text, "bold") == ["run", "now"]
    assert marked(text, "code") == ["npm test"]
    assert is_valid(text)


def test_a_link_wins_over_code_inside_it() -> None:
    text = link(code("x"), "http://x.y")

    assert text.marks == (Mark("link", 0, 1, "http://x.y"),)


def test_styles_nest() -> None:
    text = bold(join(["a ", italic("b"), " c"]))

    assert text.marks == (Mark("bold", 0, 5), Mark("italic", 2, 1))


def test_a_block_of_code_keeps_its_indentation_and_shows_tabs_as_spaces() -> None:
    text = pre("    def f():\n\tpass", "python")

    assert text == Text("    def f():\n    pass", (Mark("pre", 0, 21, "python"),))


def test_nothing_is_marked_inside_code() -> None:
    spans = [Mark("code", 0, 5), Mark("bold", 2, 1), Mark("link", 4, 1, "http://x.y")]

    assert settle("a b c", spans).marks == (Mark("code", 0, 5),)


def test_a_quote_holds_code_and_is_not_parted_by_it() -> None:
    spans = (Mark("quote", 0, 5), Mark("code", 2, 1))

    assert settle("a b c", spans).marks == spans


def test_a_block_of_spaces_is_not_marked() -> None:
    assert settle("a  b", [Mark("pre", 1, 2)]).marks == ()


def test_where_marks_are_too_many_blocks_and_links_stay_then_code() -> None:
    text = join([bold("a"), code("b"), bold("c"), link("d", "http://x.y"), pre("e"), code("f")])

    assert [mark.kind for mark in thin(text, 3).marks] == ["code", "link", "pre"]
    assert [mark.kind for mark in thin(text, 5).marks] == ["bold", "code", "link", "pre", "code"]
    assert thin(text, 6) == text


def test_nothing_to_see_gets_no_mark() -> None:
    assert bold("  ").marks == code("").marks == ()


def test_backticks_in_a_sentence_stand_around_code() -> None:
    text = prose("run `takopi init` in ` a repository")

    assert text.text == "run takopi init in ` a repository"
    assert marked(text, "code") == ["takopi init"]


@given(st.text(st.sampled_from("`a ")))
def test_a_sentence_with_any_backticks_keeps_its_words(sentence: str) -> None:
    text = prose(sentence)

    assert text.text.replace("`", "") == sentence.replace("`", "")
    assert is_valid(settle(text.text, text.marks))


def test_backticks_around_nothing_are_only_backticks() -> None:
    assert prose("a `` b ` ` c").text == "a `` b ` ` c"


def test_half_a_surrogate_pair_does_not_get_through() -> None:
    assert plain("a\ud83d").text == "a\ufffd"
    assert prose("a\ud83d `\ude00`").text == "a\ufffd \ufffd"


def test_only_pieces_that_say_something_get_a_line() -> None:
    assert stack(["a", "", Text(""), " ", "b"]).text == "a\nb"


def test_footer_is_the_ctx_line_then_the_resume_line_each_exactly_as_typed() -> None:
    text = footer("ctx: z80 @ feat/name", "claude --resume abc")

    assert text.text == "ctx: z80 @ feat/name\nclaude --resume abc"
    assert marked(text, "code") == ["ctx: z80 @ feat/name", "claude --resume abc"]


def test_footer_has_only_the_lines_that_there_are() -> None:
    assert footer(None, "codex resume 1").text == "codex resume 1"
    assert footer("ctx: z80", None).text == "ctx: z80"
    assert footer(None, None) == Text("")
