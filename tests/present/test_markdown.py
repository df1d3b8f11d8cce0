import gc
import re
import subprocess
import sys
import time
from textwrap import dedent

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from takopi.core.outgoing import Mark, Text
from takopi.present.markdown import RENDERED_CHARS, render
from tests.present.validity import SYNTAX, is_valid, markdowns, marked

ANSWER = """\
# Fixed the flaky test

The race was in `connect()`: the **timer** started *before* the socket was open.

## What changed
- `src/net.py` waits for the socket
- [tests/test_net.py](tests/test_net.py#L12) has
  a test for it
    1. fails before
    2. passes after
- [x] lint
- [ ] release notes

```python
async def connect():
\twith fail_after(5):
        await opened.wait()
```

| file | lines |
|------|------:|
| net.py | +12 |
| test_net.py | +40 |

> See [the docs](https://trio.readthedocs.io/) 🙂
> for **why**.

---
~~Nothing~~ left to do.
"""

READ = """\
Fixed the flaky test

The race was in connect(): the timer started before the socket was open.

What changed
• src/net.py waits for the socket
• tests/test_net.py#L12 has
    a test for it
    1. fails before
    2. passes after
✓ lint
☐ release notes

async def connect():
    with fail_after(5):
        await opened.wait()

file        │ lines
────────────┼──────
net.py      │   +12
test_net.py │   +40

See the docs 🙂
for why.

———
Nothing left to do."""


def test_an_answer_reads_well() -> None:
    text = render(ANSWER)

    assert text.text == READ
    assert marked(text, "bold") == ["Fixed the flaky test", "timer", "What changed", "why"]
    assert marked(text, "italic") == ["before"]
    assert marked(text, "strikethrough") == ["Nothing"]
    assert marked(text, "code") == ["connect()", "src/net.py", "tests/test_net.py#L12"]
    assert marked(text, "link") == ["the docs"]
    assert marked(text, "quote") == ["See the docs 🙂\nfor why."]
    assert [mark.extra for mark in text.marks if mark.kind == "pre"] == ["python", ""]
    assert is_valid(text)


@settings(deadline=None, max_examples=400)
@given(markdowns)
def test_any_input_gives_marks_that_a_chat_accepts(markdown: str) -> None:
    text = render(markdown)

    assert is_valid(text)
    assert text.text == text.text.rstrip()


@settings(deadline=None, max_examples=400)
@given(st.lists(st.sampled_from(SYNTAX), max_size=60))
def test_no_word_is_lost(syntax: list[str]) -> None:
    words = [f"word{index}x" for index in range(len(syntax))]
    markdown = "".join(f"{sign}{word} " for sign, word in zip(syntax, words, strict=True))
    # What stands on the line of a fence says how to show it, and is no text.
    assume(not re.search(r"(?:```|~~~).*word", markdown))
    shown = render(markdown)
    said = shown.text + "".join(mark.extra for mark in shown.marks)

    assert [word for word in words if word not in said] == []


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("[site](https://x.y/a)", Text("site", (Mark("link", 0, 4, "https://x.y/a"),))),
        ("[me](mailto:a@b.c)", Text("me", (Mark("link", 0, 2, "mailto:a@b.c"),))),
        ("[chat](tg://resolve)", Text("chat", (Mark("link", 0, 4, "tg://resolve"),))),
        ("<https://x.y>", Text("https://x.y", (Mark("link", 0, 11, "https://x.y"),))),
        ("[](https://x.y)", Text("https://x.y", (Mark("link", 0, 11, "https://x.y"),))),
        ("![cat](https://x.y/c.png)", Text("cat", (Mark("link", 0, 3, "https://x.y/c.png"),))),
        ("[`f`](https://x.y)", Text("f", (Mark("link", 0, 1, "https://x.y"),))),
        ("[a.py](src/a.py)", Text("src/a.py", (Mark("code", 0, 8),))),
        ("[src/a.py:3](src/a.py)", Text("src/a.py:3", (Mark("code", 0, 10),))),
        ("[here](a%20b.md)", Text("here (a b.md)", (Mark("code", 6, 6),))),
        ("![](shot.png)", Text("shot.png", (Mark("code", 0, 8),))),
        ("[up](#top)", Text("up")),
        ("[x](javascript:y)", Text("x (javascript:y)", (Mark("code", 3, 12),))),
        ("[e](file:///etc/hosts)", Text("file:///etc/hosts", (Mark("code", 0, 17),))),
        ("[a](b%0Ac)", Text("a (b%0Ac)", (Mark("code", 3, 5),))),
        (f"[x](data:{'a' * 999})", Text(f"x (data:{'a' * 295})", (Mark("code", 3, 300),))),
        ("[  **xx**](x) tail", Text("xx tail", (Mark("code", 0, 2),))),
        ("[a](https://)", Text("a (https://)", (Mark("code", 3, 8),))),
    ],
)
def test_links_to_the_web_are_links_and_others_are_code(markdown: str, text: Text) -> None:
    assert render(markdown) == text


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("<b>bold</b> <!-- note -->", "<b>bold</b> <!-- note -->"),
        ("<div>\nblock\n</div>", "<div>\nblock\n</div>"),
        ("a &lt; b &amp; c", "a < b & c"),
        ("[warning]: deprecated", "[warning]: deprecated"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("line one\nline two  \nline three", "line one\nline two\nline three"),
        ("a\r\nb\r\n\r\nc", "a\nb\n\nc"),
        ("7. seven\n8. eight", "7. seven\n8. eight"),
        ("3) three", "3) three"),
        ("- a\n\n- b", "• a\n\n• b"),
        ("- a\n  - b\n    - c", "• a\n    ◦ b\n        • c"),
        ("- a\n\n  b\n- c", "• a\n\n    b\n• c"),
        ("Intro:\n- a", "Intro:\n• a"),
        ("Intro:\n\n- a", "Intro:\n\n• a"),
        ("Head\n====\ntext", "Head\ntext"),
        ("-\n- b", "•\n• b"),
        ("- > q", "•\n    q"),
        ("> a\n>> b\n>\n> c", "a\n> b\n\nc"),
        ("", ""),
        (" \n\n\t", ""),
        ("```\n\n```", ""),
        ("\x00", "\ufffd"),
        ("a\ud800b", "a\ufffdb"),
        ("|a|b|\r|-|-|\r|x|y|z|", "|a|b|\n|-|-|\n|x|y|z|"),
    ],
)
def test_shapes(markdown: str, shown: str) -> None:
    assert render(markdown).text == shown


def test_code_inside_bold_parts_it() -> None:
    text = render("**run `x` now 😀**")

    assert marked(text, "bold") == ["run", "now 😀"]
    assert marked(text, "code") == ["x"]


def test_half_a_surrogate_pair_does_not_get_into_an_address() -> None:
    assert is_valid(render("[a](http://x.y/\ud800)"))


def test_a_heading_that_is_bold_already_is_bold_once() -> None:
    assert render("# a **b** c").marks == (Mark("bold", 0, 5),)


def test_an_item_that_holds_code_keeps_its_bullet_and_the_code_its_edge() -> None:
    text = render("- ```sh\n  ls\n  ```\n- b")

    assert text.text == "•\nls\n• b"
    assert text.marks == (Mark("pre", 2, 2, "sh"),)


@pytest.mark.parametrize(
    ("info", "language"),
    [("py", "py"), ("c++", "c++"), ("rust,ignore", "rust"), ("sh title=x", "sh"), ("{.py}", "")],
)
def test_the_language_of_a_fence(info: str, language: str) -> None:
    assert render(f"```{info}\nx\n```").marks == (Mark("pre", 0, 1, language),)


def test_a_table_is_aligned_by_how_wide_its_letters_are_shown() -> None:
    table = """\
        | name | n | note |
        |:-----|--:|:----:|
        | 漢字 | 1 | `a` **b** |
        | é | 22 | |
        | 👩‍👧 ok | 3 | ✔️ |
        """
    text = render(dedent(table))

    assert text.text.splitlines() == [
        "name  │  n │ note",
        "──────┼────┼─────",
        "漢字  │  1 │ a b",
        "é     │ 22",
        "👩‍👧 ok │  3 │  ✔️",
    ]
    assert [mark.kind for mark in text.marks] == ["pre"]


@pytest.mark.parametrize("prefix", ["", "> ", "- "])
def test_a_table_with_more_cells_than_columns_is_shown_as_written(prefix: str) -> None:
    rest = " " * len(prefix) if prefix == "- " else prefix
    rows = ["|a|b|", "|-|-|", "|x|`y|z`|"]
    source = "\n".join([prefix + rows[0], *(rest + row for row in rows[1:])])

    assert "|x|`y|z`|" in render(source).text
    assert "│" in render(source.replace("y|z", r"y\|z")).text


def test_a_long_cell_does_not_widen_every_other_row() -> None:
    text = render("|a|b|\n|-|-|\n" + "|x|y|\n" * 100 + f"|{'long ' * 100}|z|\n")

    assert len(text.text) < 10_000


@pytest.mark.parametrize("sign", ["> ", "- ", "1. ", "> - "])
def test_what_is_nested_too_deep_is_kept_as_written(sign: str) -> None:
    text = render(f"{sign * 500}the end\n\n{sign * 3}and more")

    assert "the end" in text.text
    assert "and more" in text.text
    assert is_valid(text)


@pytest.mark.parametrize(
    "sign", ["[", "![", "[a](", "*a ", "*[", "`a", "<", "> ", "- ", "|", "&", "_a__"]
)
def test_time_grows_with_the_length_and_no_faster(sign: str) -> None:
    render(sign)

    def spend(chars: int) -> float:
        markdown = (sign * chars)[:chars]
        start = time.process_time()
        render(markdown)
        return time.process_time() - start

    # Where many tests ran before, one collection takes longer than the parser.
    gc.disable()
    try:
        small, large = (min(spend(chars) for _ in range(3)) for chars in (2_000, 16_000))
    finally:
        gc.enable()
    # Eight times the text; a quadratic parser would take 64 times as long.
    assert large < 0.05 or large < 30 * small


def test_a_huge_answer_is_rendered_at_its_beginning_and_whole_to_the_end() -> None:
    text = render("**bold** line\n" * 100_000)

    assert text.text.startswith("bold line\nbold line\n")
    assert text.text.endswith("\n**bold** line")
    assert text.text.count("line") == 100_000
    assert len(text.marks) <= RENDERED_CHARS


def test_the_parser_is_loaded_with_the_first_answer_only() -> None:
    program = (
        "import sys, takopi.present.cards, takopi.present.lists;"
        "before = 'markdown_it' in sys.modules;"
        "takopi.present.cards.render('a');"
        "print(before, 'markdown_it' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False True\n"
