from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.turns.fences import correct
from takopi.turns.grammar import parse
from takopi.turns.plan import Create, Edit, Execute, Plan, Swap
from takopi.turns.render import render
from tests.turns.plans import HOSTILE, plans

TOP = "# T\n\n## Rationale\n```\nWhy.\n```\n\n## Action Plan\n\n"
README = "# Doc\n\n```python\nx = 1\n```\n\nMore.\n"
READ = "\n### `READ`\n- **Resource:** [a](/a)\n"


def create(content: str, *, opening: str = "```", closing: str = "```") -> str:
    return f"### `CREATE`\n- **File Path:** [a](/a)\n{opening}\n{content}{closing}\n"


def edit(find: str, replace: str, *, marks: str = "```") -> str:
    parts = [
        f"`{word}:`\n{marks}\n{text}{marks}\n"
        for word, text in (("FIND", find), ("REPLACE", replace))
    ]
    return "### `EDIT`\n- **File Path:** [a](/a)\n" + "".join(parts)


C = "`" * 3
CREATES = {
    "a document with one block": (create(README), README),
    "the same, with a language on the outer fence": (create(README, opening="```markdown"), README),
    "a block at the very end": (create("x\n```py\ny\n```\n"), "x\n```py\ny\n```\n"),
    "a block at the very start": (create("```py\ny\n```\nx\n"), "```py\ny\n```\nx\n"),
    "two blocks": (create("```a\n1\n```\n-\n```b\n2\n```\n"), "```a\n1\n```\n-\n```b\n2\n```\n"),
    "longer fences inside": (create("`````py\nx\n`````\n"), "`````py\nx\n`````\n"),
    "an opening fence longer than the closing one": (create("x\n", opening="````"), "x\n"),
    "a longer opening fence around a block": (create(README, opening="`````md"), README),
    "another action behind it": (create(README) + READ, README),
    "a rule before the next action": (create(README) + "\n---\n" + READ, README),
    "a heading without a blank": (create(README) + "###`READ`\n- **Resource:** a\n", README),
    "an action heading without marks": (create(README) + "\n### READ\n- **Resource:** a\n", README),
    "a heading of a section inside a block inside": (
        create("a\n```py\nx\n```\n## Rationale\nb\n"),
        "a\n```py\nx\n```\n## Rationale\nb\n",
    ),
    "a language that is opened and never closed": (create("see:\n```py\n") + READ, "see:\n```py\n"),
    "tildes around tildes": (
        create("~~~py\nx\n~~~\nmore\n", opening="~~~", closing="~~~"),
        "~~~py\nx\n~~~\nmore\n",
    ),
    "indented fences inside": (create("  ```py\n  x\n  ```\n.\n"), "  ```py\n  x\n  ```\n.\n"),
    "three blocks of one document": (create(README * 3), README * 3),
    "a plan inside a plan": (create(TOP + "```sh\nls\n```\n.\n") + READ, None),
}  # fmt: skip


@pytest.mark.parametrize("name", CREATES)
def test_file_with_fences_in_it_becomes_what_was_meant(name: str) -> None:
    body, content = CREATES[name]
    fixed = correct(TOP + body)
    assert correct(fixed) == fixed
    plan = parse(fixed)
    if content is None:
        return
    assert isinstance(plan, Plan), plan
    assert plan.actions[0] == Create(path="a", content=content)
    assert len(plan.actions) == 1 + body.count("READ")


@pytest.mark.parametrize(
    ("text", "swap"),
    [
        (edit("```py\nx\n```\na\n", "b\n"), Swap("```py\nx\n```\na", "b")),
        (edit("b\n", "```py\nx\n```\na\n"), Swap("b", "```py\nx\n```\na")),
        (edit("```a\n1\n```\n.\n", "```a\n2\n```\n\n"), Swap("```a\n1\n```\n.", "```a\n2\n```\n")),
        (edit("a\n", "b\n", marks="````") + READ, Swap("a", "b")),
    ],
)  # fmt: skip
def test_pieces_with_fences_in_them_become_what_was_meant(text: str, swap: Swap) -> None:
    fixed = correct(TOP + text)
    plan = parse(fixed)
    assert isinstance(plan, Plan), plan
    assert plan.actions[0] == Edit(path="a", swaps=(swap,))
    assert correct(fixed) == fixed


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff{plan}",
        "Here is the plan:\n\n{plan}",
        "```markdown\n{plan}```\n",
        "```md\n{plan}\n```",
        "Sure!\n\n````\n{plan}````\n\n",
        "\n\n{plan}",
    ],
)
def test_what_stands_around_a_plan_is_dropped(text: str) -> None:
    plan = TOP + create(README) + "\n### `EXECUTE`\n```sh\nls\n```\n"
    fixed = correct(text.format(plan=plan))
    read = parse(fixed)
    assert isinstance(read, Plan), read
    assert read.actions == (Create(path="a", content=README), Execute(command="ls"))
    assert fixed.startswith("# T\n")
    assert correct(fixed) == fixed


def test_headings_without_a_blank_get_one() -> None:
    crammed = (TOP + create(README) + READ).replace("# T", "#T", 1).replace("## ", "##")
    fixed = correct(crammed.replace("### `", "###`"))
    assert fixed.startswith("# T\n\n## Rationale\n")
    assert isinstance(parse(fixed), Plan)


def test_text_that_was_saved_with_other_line_ends_gets_plain_ones() -> None:
    text = TOP + create("a\nb\n")
    assert correct(text.replace("\n", "\r\n")) == text


def test_fence_that_is_never_closed_is_left_for_the_grammar_to_refuse() -> None:
    text = TOP + "### `CREATE`\n- **File Path:** a\n```\nhalf a file\n"
    assert correct(text) == text
    assert not isinstance(parse(text), Plan)


@settings(max_examples=150, deadline=None)
@given(plans)
def test_sound_plan_is_left_byte_for_byte(plan: Plan) -> None:
    assert correct(render(plan)) == render(plan)


pieces = st.sampled_from([*HOSTILE, "### `EDIT`", "```sh", "Words.", "### `CHAT_WITH_USER`"])


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=25))
def test_twice_is_the_same_as_once(lines: list[str]) -> None:
    once = correct("\n".join(lines))
    assert correct(once) == once


@settings(max_examples=200, deadline=None)
@given(st.lists(pieces, max_size=15), st.lists(pieces, max_size=15))
def test_twice_is_the_same_as_once_inside_a_plan(body: list[str], after: list[str]) -> None:
    text = TOP + create("\n".join([*body, ""])) + "\n".join(after)
    assert correct(correct(text)) == correct(text)
