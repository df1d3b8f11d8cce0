"""Plans as Hypothesis makes them: anything that a plan can say, however it looks."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from takopi.turns.plan import (
    Action,
    Chat,
    Conclude,
    Create,
    Edit,
    Execute,
    Invoke,
    Memo,
    Plan,
    Prune,
    Read,
    Research,
    Swap,
)

HOSTILE = [
    "```", "````", "`````python", "~~~", "~~~~sh", "# Title", "## Rationale", "## Action Plan",
    "### `CREATE`", "### `READ`", "`FIND:`", "`REPLACE:`", "#### `FIND:`", "---", "===", "",
    "- **File Path:** [a](/a)", "def __main__():", "\tindented\twith tabs", "    four", "🟢🐙",
    "[+] memo # why", "<div>", "<!--", "-->", "[a]: b", "> quote", "1. one", "* star", "\\", "`",
    "carriage\r", "form\x0cfeed", "line\u2028separator", " ", "&amp;", "\x00",
]  # fmt: skip

chars = st.characters(codec="utf-8", exclude_characters="\r\n")
line = st.one_of(st.sampled_from(HOSTILE), st.text(chars, max_size=20))
ends = st.sampled_from(["\n", "\n", "\r\n"])
content = st.lists(st.tuples(line, ends), max_size=12).map(
    lambda lines: "".join(text + end for text, end in lines)
)
"""The content of a file: nothing, or lines that all end."""


def chomped(text: str) -> str:
    return re.sub(r"(?:\r\n|\r|\n)\Z", "", text)


inside = content.map(chomped).map(lambda text: text.rstrip("\r"))
"""Text whose last line's end does not count."""
some = inside.filter(lambda text: bool(text.strip()))
value = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=20)
value = value.map(str.strip)
name = value.filter(bool)
path = st.from_regex(r"[\w.@ ()\[\]-]{1,12}(/[\w.-]{1,12}){0,3}", fullmatch=True).filter(
    lambda text: text == text.strip() and not re.search(r"\]\(", text)
)
words = st.sampled_from(["Hello.", "", "- a list", "## A heading", "```py\n# x\n```", "> q"])
free = st.lists(words).map(lambda lines: "\n".join(["Words.", *lines, "", "The end."]))

memo = st.builds(
    Memo,
    st.sampled_from(["+", "-"]),
    name.filter(lambda text: not re.search(r"(^|\s)#(\s|$)|^(ADD|REMOVE):", text)),
    value,
)
swap = st.builds(Swap, inside.filter(bool), inside)
env = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
    value.filter(lambda text: not text.endswith("`")),
    max_size=3,
)
action: st.SearchStrategy[Action] = st.one_of(
    st.builds(Create, path=path, content=content, description=value),
    st.builds(Read, path=path, description=value),
    st.builds(Prune, path=path, description=value),
    st.builds(Edit, path=path, swaps=st.lists(swap, min_size=1, max_size=3).map(tuple)),
    st.builds(
        Execute,
        command=some,
        description=value,
        expected=value,
        cwd=st.one_of(st.just(""), path),
        env=env,
        timeout_s=st.one_of(st.none(), st.integers(1, 3600).map(float), st.just(0.5)),
    ),
    st.builds(Research, queries=st.lists(some, min_size=1, max_size=3).map(tuple)),
    st.builds(Chat, text=free),
    st.builds(Invoke, agent=name, handoff=st.lists(path, max_size=3).map(tuple), text=free),
    st.builds(Conclude, handoff=st.lists(path, max_size=3).map(tuple), text=free),
)
plans = st.builds(
    Plan,
    title=name,
    status=value,
    plan_type=value,
    agent=value,
    rationale=inside,
    memos=st.lists(memo, max_size=3).map(tuple),
    actions=st.lists(action, min_size=1, max_size=5).map(tuple),
)
