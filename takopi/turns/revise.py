"""Makes an action out of what a person made of it; anything that cannot be carried out is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from takopi.turns import journal
from takopi.turns.machine import Choice, final_actions
from takopi.turns.paths import normal, path_fault
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
    Swap,
)
from takopi.turns.swaps import exchange


def words_of(action: Action) -> tuple[str, ...]:
    """The texts of an action that a person may change: its command, its queries, its message."""
    match action:
        case Execute():
            return (action.command,)
        case Research():
            return action.queries
        case Chat() | Invoke() | Conclude():
            return (action.text,)
        case Create() | Edit() | Read() | Prune():
            return ()


def with_words(action: Action, words: tuple[str, ...]) -> Action:
    """An action with other texts, as many as it had; an empty one leaves it as it was."""
    if not all(one.strip() for one in words):
        return action
    match action:
        case Execute():
            return replace(action, command=words[0])
        case Research():
            return replace(action, queries=words)
        case Chat() | Invoke() | Conclude():
            return replace(action, text=words[0])
        case Create() | Edit() | Read() | Prune():
            return action


def with_file(action: Create, *, path: str, content: str) -> Create:
    """A CREATE of another file; its lines all end, as those of a plan's file do."""
    end = "\n" if content and not content.endswith("\n") else ""
    return replace(action, path=path, content=content + end)


def with_result(action: Edit, *, before: str, after: str) -> Edit:
    """An EDIT that leaves this text behind; one that changes nothing is left as it was."""
    if after in {before, exchange(before, action.swaps)[0]}:
        return action
    return replace(action, swaps=(Swap(before, after),))


def create_fault(root: Path, path: str) -> str | None:
    """Why no file can be made at a path, None if one can."""
    if fault := path_fault(root, path):
        return f"The path {fault}."
    return "The file exists already." if (root / path).exists() else None


def can_be_kept(action: Action) -> bool:
    """Whether a changed action can be noted down before it is carried out."""
    return journal.can_be_kept(action)


def text_before(root: Path, plan: Plan, choice: Choice, *, index: int) -> str:
    """What the file of an action will be when the turn comes to it."""
    actions = final_actions(choice, plan)
    target = actions[index]
    if not isinstance(target, Edit):
        return ""
    file = root / target.path
    text = file.read_bytes().decode("utf-8", "replace") if file.is_file() else ""
    for place, action in enumerate(actions[:index]):
        if place not in choice.actions or not isinstance(action, Create | Edit):
            continue
        if normal(action.path) != normal(target.path):
            continue
        if isinstance(action, Create):
            text = action.content
        else:
            text, _ = exchange(text, action.swaps)
    return text
