"""What a memo or an action would do, as a text that a person can read before it happens.

Nothing in it can hide or reorder the rest: such characters are spelled out.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from takopi.engines.wording import visible
from takopi.turns.machine import Choice, final_actions
from takopi.turns.paths import path_fault
from takopi.turns.plan import (
    Action,
    Chat,
    Conclude,
    Create,
    Edit,
    Execute,
    Invoke,
    Plan,
    Prune,
    Read,
    Research,
)
from takopi.turns.render import action_keys, render_memo
from takopi.turns.revise import text_before
from takopi.turns.swaps import exchange

MAX_BYTES = 1_000_000
"""How much of a file is shown: nobody reads more before a decision."""

_BOLD = re.compile(r"\*\*(.+?:)\*\*")
_LINK = re.compile(r"\[([^\]]*)\]\(/\1\)")


@dataclass(frozen=True, slots=True)
class Preview:
    """`keys` are the plan's own words about it, a line each; `name` is the text's as a file."""

    text: str
    keys: str = ""
    language: str = ""
    name: str = "preview.txt"


def preview(root: Path, plan: Plan, choice: Choice, *, item: int) -> Preview:
    """The file, the diff or the command; memos come before the actions."""
    found = _preview(root, plan, choice, item=item)
    return replace(
        found, text=visible(found.text), keys=visible(found.keys), name=visible(found.name)
    )


def _preview(root: Path, plan: Plan, choice: Choice, *, item: int) -> Preview:
    index = item - len(plan.memos)
    if index < 0:
        return Preview(render_memo(plan.memos[item]))
    action = final_actions(choice, plan)[index]
    keys = _LINK.sub(r"\1", _BOLD.sub(r"\1", _keys(action)))
    keys = "\n".join(line.removeprefix("- ") for line in keys.splitlines())
    match action:
        case Create():
            return Preview(action.content, keys, name=PurePosixPath(action.path).name)
        case Edit():
            before = text_before(root, plan, choice, index=index)
            after, faults = exchange(before, action.swaps)
            diff = difflib.unified_diff(
                before.splitlines(), after.splitlines(), "a", "b", lineterm=""
            )
            name = f"{PurePosixPath(action.path).name}.diff"
            return Preview("\n".join([*faults, *list(diff)[2:]]), keys, language="diff", name=name)
        case Execute():
            return Preview(action.command, keys, language="shell", name="command.sh")
        case Research():
            return Preview("\n\n".join(action.queries), keys)
        case Read() | Prune():
            return Preview(_read(root, action.path), keys, name=PurePosixPath(action.path).name)
        case Chat() | Invoke() | Conclude():
            return Preview(action.text, keys, name="message.md")


def _keys(action: Action) -> str:
    """How a command runs comes before what its author says of it, however much that is."""
    if not isinstance(action, Execute):
        return action_keys(action)
    said = Execute(command="", description=action.description, expected=action.expected)
    return action_keys(replace(action, description="", expected="")) + action_keys(said)


def _read(root: Path, path: str) -> str:
    if fault := path_fault(root, path):
        return f"(not shown: the path {fault})"
    try:
        with (root / path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        return f"({error.strerror})"
    cut = "\n…" if len(data) > MAX_BYTES else ""
    return data[:MAX_BYTES].decode("utf-8", "replace") + cut
