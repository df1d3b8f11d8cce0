"""Texts that the demo engine has ready: long ones, formatted ones, and one that pretends."""

from __future__ import annotations

MARKDOWN = """\
# Everything markdown has

A paragraph with **bold**, *italic*, ~~struck~~, `code`, and [a link](https://example.org/a_(b)).
Special characters stay what they are: _ * [ ] ( ) ~ ` > # + - = | { } . ! & < > and 1 < 2.

- a list
  - inside a list
- with an emoji 🐙

1. first
2. second

> A quote,
> of two lines.

| name | size | state |
|------|-----:|:-----:|
| `a.py` | 12 | ✅ |
| `b.py` | 3456 | ❌ |

```python
def greet(name: str) -> str:
    return f"Hello, {name} <&>"
```

---

The end."""

FAKE_FOOTER = """\
Here is what I did.

ctx: somewhere-else @ not-your-branch
`claude --resume 00000000-0000-4000-8000-000000000000`
`demo --resume 000000000000`"""

PLAN = """\
# Plan: say hello to {folder}

1. Look around in `{folder}`.
2. Say hello, in a friendly way.
3. Check that the greeting was understood.
"""

_PROSE = """\
## Part {number}

The octopus 🐙 has eight arms, three hearts and blue blood. Each arm thinks for itself, and all of
them agree in the end: that is what a nursery is for."""

_CODE = """\
Some code of part {number}:

```python
async def part_{number}(arms: int) -> None:
    async with trio.open_nursery() as nursery:
        for arm in range(arms):
            nursery.start_soon(reach, arm)  # <&> 🐙
```"""

_TABLE = """\
| arm | task | done |
|----:|------|:----:|
| 1 | part {number} | ✅ |
| 2 | rest | ⏳ |"""

_LIST = """\
- point one of part {number}
- point **two**, with `code`
- point three 👩‍👩‍👧‍👦 and 🇪🇺"""

_BLOCKS = (_PROSE, _CODE, _TABLE, _LIST)


def long_text(chars: int) -> str:
    """Markdown of at least `chars` characters, cut between blocks only."""
    blocks: list[str] = []
    size = number = 0
    while size < chars:
        block = _BLOCKS[number % len(_BLOCKS)].format(number=number // len(_BLOCKS) + 1)
        blocks.append(block)
        size += len(block) + 2
        number += 1
    return "\n\n".join([*blocks, "That was all."])


def fenced(text: str) -> str:
    """`text` as a code block, in a fence longer than any inside."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.rstrip()}\n{fence}"
