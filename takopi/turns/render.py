"""Writes a plan as plan.md, so that reading it again gives the same plan."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
)


def fence(text: str, info: str = "") -> str:
    """A code fence around a text, longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    end = "" if not text or text.endswith(("\n", "\r")) else "\n"
    return f"{marks}{info}\n{text}{end}{marks}"


def link(path: str) -> str:
    """A path of the project as plans write it."""
    plain = re.search(r"[\[\]()<>]", path) or "://" in path
    return path if plain else f"[{path}](/{path})"


def key(name: str, value: str) -> str:
    """A key with its value; nothing for no value."""
    return f"- **{name}:** {value}\n" if value else ""


def render(plan: Plan) -> str:
    """The markdown of a plan."""
    head = key("Status", plan.status) + key("Plan Type", plan.plan_type) + key("Agent", plan.agent)
    parts = [f"# {plan.title}\n{head}".rstrip("\n")]
    parts.append(f"## Rationale\n{fence(_block(plan.rationale))}")
    if plan.memos:
        memos = "".join(f"{render_memo(memo)}\n" for memo in plan.memos)
        parts.append(f"## Memos\n{fence(memos)}")
    parts.append("## Action Plan")
    parts += [render_action(action) for action in plan.actions]
    return "\n\n".join(parts) + "\n"


def render_memo(memo: Memo) -> str:
    """One line of the memos."""
    return f"[{memo.sign}] {memo.text}" + (f" # {memo.why}" if memo.why else "")


def render_action(action: Action) -> str:
    """The markdown of one action."""
    return f"### `{action.kind}`\n{_body(action)}".rstrip("\r\n")


def action_keys(action: Action) -> str:
    """The keys of an action, a line each."""
    match action:
        case Create() | Edit():
            return key("File Path", link(action.path)) + key("Description", action.description)
        case Read() | Prune():
            return key("Resource", link(action.path)) + key("Description", action.description)
        case Execute():
            limit = "" if action.timeout_s is None else f"{action.timeout_s!r}"
            return (
                key("Description", action.description)
                + key("Expected Outcome", action.expected)
                + key("cwd", link(action.cwd) if action.cwd else "")
                + _list("env", (f"{name}={value}" for name, value in action.env.items()))
                + key("Timeout", limit.removesuffix(".0"))
            )
        case Research():
            return key("Description", action.description)
        case Invoke():
            return key("Agent", action.agent) + _list(
                "Handoff Resources", map(link, action.handoff)
            )
        case Conclude():
            return _list("Handoff Resources", map(link, action.handoff))
        case Chat():
            return ""


def _body(action: Action) -> str:
    keys = action_keys(action)
    match action:
        case Create():
            return keys + fence(action.content)
        case Edit():
            return keys + "\n".join(
                f"`FIND:`\n{fence(_block(swap.find))}\n`REPLACE:`\n{fence(_block(swap.replace))}"
                for swap in action.swaps
            )
        case Execute():
            return keys + fence(_block(action.command), "shell")
        case Research():
            return keys + "\n".join(fence(_block(query)) for query in action.queries)
        case Chat():
            return action.text
        case Invoke() | Conclude():
            return f"{keys}\n{action.text}" if action.text else keys
        case Read() | Prune():
            return keys


def _block(text: str) -> str:
    """A text whose last line's end does not count, as the inside of a fence."""
    return f"{text}\n" if text else ""


def _list(name: str, items: Iterable[str]) -> str:
    lines = "".join(f"  - {item}\n" for item in items)
    return f"- **{name}:**\n{lines}" if lines else ""
