from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from takopi.turns.grammar import KINDS, Malformed, parse
from takopi.turns.plan import Chat, Conclude, Create, Edit, Execute, Invoke, Plan, Read, Swap
from takopi.turns.render import render
from tests.turns.plans import plans

HEAD = "# T\n- **Status:** Green 🟢\n\n## Rationale\n```\nWhy.\n```\n\n## Action Plan\n\n"


def faults(text: str) -> list[str]:
    found = parse(text)
    assert isinstance(found, Malformed)
    return [str(fault) for fault in found.faults]


def plan(text: str) -> Plan:
    found = parse(text)
    assert isinstance(found, Plan), found
    return found


@settings(max_examples=150, deadline=None)
@given(plans)
def test_plan_that_is_written_and_read_is_the_same_plan(made: Plan) -> None:
    assert parse(render(made)) == made


@settings(max_examples=150, deadline=None)
@given(plans)
def test_written_plan_does_not_change_when_it_is_written_again(made: Plan) -> None:
    assert render(plan(render(made))) == render(made)


def test_file_of_a_megabyte_comes_through_whole() -> None:
    content = "".join(f"line {n} ```` `__main__` \t🐙\r\n" for n in range(40_000))
    made = Plan(title="T", rationale="", actions=(Create(path="a", content=content),))
    assert len(content.encode()) > 1_000_000
    assert parse(render(made)) == made


def test_every_part_of_a_plan_is_read() -> None:
    read = plan(
        """# Add a greeting
- **Status:** Green 🟢
- **Plan Type:** Implementation
- **Agent:** Developer

## Rationale
````text
Because.
````

## Memos
```
[+] Use pnpm. # It is faster.
[-] Use npm.
```

## Action Plan

### `CREATE`
- **File Path:** [src/a.py](/src/a.py)
- **Description:** A file.
````python
print("hi")
````

### `EDIT`
- **File Path:** `b.py`
`FIND:`
```python
old
```
#### `REPLACE:`
```python
new
```

### `EXECUTE`
- **Description:** Test it.
- **Expected Outcome:** Passes.
- **cwd:** [src](/src)
- **env:**
  - A=1
- **Timeout:** 5 s
```shell
make test
```

### `INVOKE`
- **Agent:** Architect
- **Handoff Resources:**
  - [src/a.py](/src/a.py)
  - b.py

Look at **this**.

## A heading of its own
"""
    )
    assert (read.title, read.status) == ("Add a greeting", "Green 🟢")
    assert (read.plan_type, read.agent) == ("Implementation", "Developer")
    assert [memo.text for memo in read.memos] == ["Use pnpm.", "Use npm."]
    assert read.memos[0].why == "It is faster."
    assert read.actions == (
        Create(path="src/a.py", content='print("hi")\n', description="A file."),
        Edit(path="b.py", swaps=(Swap("old", "new"),)),
        Execute(
            command="make test",
            description="Test it.",
            expected="Passes.",
            cwd="src",
            env={"A": "1"},
            timeout_s=5,
        ),
        Invoke(
            agent="Architect",
            handoff=("src/a.py", "b.py"),
            text="Look at **this**.\n\n## A heading of its own",
        ),
    )
    assert [action.line for action in read.actions] == [19, 26, 37, 48]


@pytest.mark.parametrize(
    "body",
    [
        "### `READ`\n- **Resource:** [a](/a)\n\n---\n",
        "### READ**\n- **Resource:** [a](/a)\n",
        "### READ\n- Resource: a\n",
        "###`READ`\n* **Resource**: `a`\n",
    ],
)
def test_slips_that_leave_no_doubt_are_tolerated(body: str) -> None:
    assert plan(HEAD + body).actions == (Read(path="a"),)


def test_title_without_a_blank_and_words_before_it_are_tolerated() -> None:
    read = plan("Here you are:\n\n#" + HEAD[2:] + "### `CHAT_WITH_USER`\nHello\n")
    assert (read.title, read.actions) == ("T", (Chat(text="Hello"),))


def test_rule_after_free_text_is_no_part_of_it() -> None:
    read = plan(HEAD + "### `CHAT_WITH_USER`\nHello\n\n---\n\n### `CONCLUDE`\n")
    assert read.actions == (Chat(text="Hello"), Conclude())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["line 1: expected a title (`# …`) first, found nothing"]),
        ("## Rationale\n", ["line 1: expected a title (`# …`) first, found `## Rationale`"]),
        (
            "# T\n",
            [
                "line 1: expected `## Rationale`, found the end of the plan",
                "line 1: expected `## Action Plan`, found the end of the plan",
            ],
        ),
        (HEAD, ["line 9: expected at least one action under `## Action Plan`, found none"]),
        (
            HEAD + "text\n",
            [
                "line 11: expected an action such as ### `CREATE`, found `text`",
                "line 9: expected at least one action under `## Action Plan`, found none",
            ],
        ),
        (
            HEAD + "### `DELETE`\n",
            [
                f"line 11: expected one of {', '.join(KINDS)}, found `### `DELETE``",
            ],
        ),
        (HEAD + "### `READ`\n", ["line 11: expected `- **Resource:** …`, found none"]),
        (
            HEAD + "### `READ`\n- **Resource:** a\n- **Colour:** red\n",
            ["line 13: expected a key (description, resource), found `Colour`"],
        ),
        (
            HEAD + "### `READ`\n- **Resource:** a\n- **Resource:** b\n",
            ["line 13: expected each key once, found `- **Resource:** b`"],
        ),
        (
            HEAD + "### `CREATE`\n- **File Path:** a\n",
            ["line 11: expected a code fence, found nothing"],
        ),
        (
            HEAD + "### `CREATE`\n- **File Path:** a\n```\nx\n",
            ["line 13: expected a code fence that is closed, found one that never ends"],
        ),
        (
            HEAD + "### `CREATE`\n- **File Path:** a\n```\nx\n```\nmore\n",
            ["line 16: expected the next action, found `more`"],
        ),
        (
            HEAD + "### `EDIT`\n- **File Path:** a\n`FIND:`\n```\nx\n```\n",
            ["line 14: expected `REPLACE:` and a code fence, found the end of the action"],
        ),
        (
            HEAD + "### `EDIT`\n- **File Path:** a\n`REPLACE:`\n```\nx\n```\n",
            ["line 13: expected `FIND:`, found ``REPLACE:``"],
        ),
        (
            HEAD + "### `EDIT`\n- **File Path:** a\n`FIND:`\n```\n```\n`REPLACE:`\n```\n```\n",
            ["line 14: expected text in the FIND block, found nothing"],
        ),
        (
            HEAD + "### `EXECUTE`\n- **Timeout:** soon\n```\nls\n```\n",
            ["line 12: expected seconds up to 3600, found `soon`"],
        ),
        (
            HEAD + "### `EXECUTE`\n- **env:** A\n```\nls\n```\n",
            ["line 12: expected `NAME=value`, found `A`"],
        ),
        (
            HEAD + "### `EXECUTE`\n```\n\n```\n",
            ["line 11: expected a command in the code fence, found nothing"],
        ),
        (
            HEAD + "### `RESEARCH`\n",
            ["line 11: expected a code fence with a query, found none"],
        ),
        (HEAD + "### `CHAT_WITH_USER`\n", ["line 11: expected some text, found nothing"]),
        (HEAD + "### `INVOKE`\nHi\n", ["line 11: expected `- **Agent:** …`, found none"]),
        (
            HEAD.replace("## A", "## Memos\n```\nUse pnpm\n```\n\n## A") + "### `CONCLUDE`",
            ["line 11: expected `[+] memo # why` or `[-] memo # why`, found `Use pnpm`"],
        ),
    ],
)  # fmt: skip
def test_broken_form_says_what_was_expected_and_what_is_there(
    text: str, expected: list[str]
) -> None:
    assert sorted(faults(text)) == sorted(expected)


def test_every_broken_action_is_named_not_only_the_first() -> None:
    found = faults(HEAD + "### `READ`\n\n### `CREATE`\n\n### `EDIT`\n- **File Path:** a\n")
    assert [re.findall(r"\d+", fault)[0] for fault in found] == ["11", "13", "15"]
