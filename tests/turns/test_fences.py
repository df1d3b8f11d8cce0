from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.turns.fences import correct
from takopi.turns.grammar import parse
from takopi.turns.plan import Action, Chat, Conclude, Create, Edit, Execute, Plan, Read, Swap
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


def made(content: str) -> Create:
    return Create(path="a", content=content)


A = Read(path="a")
DOC = made(README)
OUTER = create(README)
HEREDOC = "cat > a.md <<'E'\n```py\nx\n```\nE"
MARKED = edit("```py\nx\n```\na\n", "b\n")
MORE_PAIRS = "`FIND:`\n```\nc\n```\n`REPLACE:`\n```\n```py\nd\n```\ne\n```\n"
BROKEN: dict[str, tuple[str, tuple[Action, ...]]] = {
    "a document with one block": (OUTER, (DOC,)),
    "a language on the outer fence": (create(README, opening="```markdown"), (DOC,)),
    "a block at the very end": (create("x\n```py\ny\n```\n"), (made("x\n```py\ny\n```\n"),)),
    "a block at the very start": (create("```py\ny\n```\nx\n"), (made("```py\ny\n```\nx\n"),)),
    "two blocks": (
        create("```a\n1\n```\n-\n```b\n2\n```\n"),
        (made("```a\n1\n```\n-\n```b\n2\n```\n"),),
    ),
    "three blocks": (create(README * 3), (made(README * 3),)),
    "blocks without a language": (
        create("a\n```\nx\n```\nb\n"),
        (made("a\n```\nx\n```\nb\n"),),
    ),
    "longer fences inside": (create("`````py\nx\n`````\n"), (made("`````py\nx\n`````\n"),)),
    "longer fences around fences inside": (
        create("`````\n```\nx\n```\n`````\n"),
        (made("`````\n```\nx\n```\n`````\n"),),
    ),
    "an opening fence longer than the closing one": (create("x\n", opening="````"), (made("x\n"),)),
    "a longer opening fence around a block": (create(README, opening="`````md"), (DOC,)),
    "a closing fence that is indented": (create(README, closing="  ```"), (DOC,)),
    "another action behind it": (OUTER + READ, (DOC, A)),
    "a rule before the next action": (OUTER + "\n---\n" + READ, (DOC, A)),
    "a heading without a blank": (OUTER + "###`READ`\n- **Resource:** a\n", (DOC, A)),
    "an action heading without marks": (OUTER + "\n### READ\n- **Resource:** a\n", (DOC, A)),
    "a message with a block behind it": (
        OUTER + "\n### `CHAT_WITH_USER`\nSee:\n\n```py\nx\n```\n",
        (DOC, Chat(text="See:\n\n```py\nx\n```")),
    ),
    "a conclusion behind it": (
        OUTER + "\n### `CONCLUDE`\n- **Handoff Resources:**\n  - a\n\nDone.\n",
        (DOC, Conclude(handoff=("a",), text="Done.")),
    ),
    "the heading of a section inside": (
        create("a\n```py\nx\n```\n## Rationale\nb\n"),
        (made("a\n```py\nx\n```\n## Rationale\nb\n"),),
    ),
    "tildes around tildes": (
        create("~~~py\nx\n~~~\nmore\n", opening="~~~", closing="~~~"),
        (made("~~~py\nx\n~~~\nmore\n"),),
    ),
    "indented fences inside": (
        create("  ```py\n  x\n  ```\n.\n"),
        (made("  ```py\n  x\n  ```\n.\n"),),
    ),
    "two broken files": (OUTER + "\n" + OUTER, (DOC, DOC)),
    "a sound file and a broken one": (create("x\n") + "\n" + OUTER, (made("x\n"), DOC)),
    "a broken file and a broken edit": (
        OUTER + "\n" + MARKED,
        (DOC, Edit(path="a", swaps=(Swap("```py\nx\n```\na", "b"),))),
    ),
    "a block in a FIND": (MARKED, (Edit(path="a", swaps=(Swap("```py\nx\n```\na", "b"),)),)),
    "a block in a REPLACE": (
        edit("b\n", "```py\nx\n```\na\n"),
        (Edit(path="a", swaps=(Swap("b", "```py\nx\n```\na"),)),),
    ),
    "a block in both": (
        edit("```a\n1\n```\n.\n", "```a\n2\n```\n\n"),
        (Edit(path="a", swaps=(Swap("```a\n1\n```\n.", "```a\n2\n```\n"),)),),
    ),
    "blocks in two pairs": (
        MARKED + MORE_PAIRS,
        (
            Edit(
                path="a",
                swaps=(Swap("```py\nx\n```\na", "b"), Swap("c", "```py\nd\n```\ne")),
            ),
        ),
    ),
    "markers that are headings": (
        MARKED.replace("`FIND:`", "#### `FIND:`").replace("`REPLACE:`", "#### `REPLACE:`"),
        (Edit(path="a", swaps=(Swap("```py\nx\n```\na", "b"),)),),
    ),
    "a command with a document in it": (
        f"### `EXECUTE`\n```sh\n{HEREDOC}\n```\n" + READ,
        (Execute(command=HEREDOC), A),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_plan_becomes_what_was_meant(name: str) -> None:
    body, actions = BROKEN[name]
    assert parse(TOP + body) != Plan(title="T", rationale="Why.", actions=actions)
    fixed = correct(TOP + body)
    assert parse(fixed) == Plan(title="T", rationale="Why.", actions=actions)
    assert correct(fixed) == fixed


def test_rationale_with_a_block_in_it_becomes_what_was_meant() -> None:
    broken = TOP.replace("Why.", "Why:\n```py\nx\n```\nso.") + READ
    fixed = parse(correct(broken))
    assert isinstance(fixed, Plan)
    assert (fixed.rationale, fixed.actions) == ("Why:\n```py\nx\n```\nso.", (A,))


def test_block_that_is_opened_inside_and_never_closed_is_part_of_the_file() -> None:
    text = TOP + create("see:\n```py\n") + READ
    assert correct(text) == text
    plan = parse(text)
    assert isinstance(plan, Plan)
    assert plan.actions == (made("see:\n```py\n"), A)


@pytest.mark.parametrize(
    "body",
    [
        create(TOP + "```sh\nls\n```\n.\n") + READ,
        "### `RESEARCH`\n```\nwhy does\n```py\nx()\n```\nfail\n```\n",
    ],
)
def test_plan_that_could_mean_two_things_is_left_for_the_grammar_to_refuse(body: str) -> None:
    fixed = correct(TOP + body)
    assert not isinstance(parse(fixed), Plan)
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
