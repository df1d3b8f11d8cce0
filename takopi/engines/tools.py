"""What a tool call looks like to a person: its kind, and one line that names its target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from takopi.core.events import ActionKind
from takopi.engines.jsonl import decode_part
from takopi.engines.wording import TITLE_CHARS, clip, shorten
from takopi.kit.cwd import relativize_command, relativize_path

# Far more than a model calls at once: only a stream that never returns results gets there.
MAX_OPEN_CALLS = 500

C = TypeVar("C")

_KINDS: dict[str, ActionKind] = {
    "bash": "command",
    "powershell": "command",
    "shell": "command",
    "apply_patch": "file_change",
    "edit": "file_change",
    "multiedit": "file_change",
    "patch": "file_change",
    "write": "file_change",
    "codesearch": "web_search",
    "webfetch": "web_search",
    "websearch": "web_search",
    "task": "subagent",
}


class Target(msgspec.Struct, frozen=True):
    """The arguments that say what a tool is aimed at, under the names that engines give them."""

    command: str = ""
    pattern: str = ""
    query: str = ""
    url: str = ""
    description: str = ""
    file_path: str = msgspec.field(default="", name="filePath")
    path: str = ""


_target = msgspec.json.Decoder(Target)


def describe_call(name: str, arguments: msgspec.Raw, *, cwd: Path) -> tuple[ActionKind, str]:
    """The kind of a call and its title."""
    kind = _KINDS.get(name.lower(), "tool")
    try:
        target = decode_part(arguments, _target)
    except msgspec.MsgspecError:
        target = Target()
    aim = _aim(kind, target, cwd)
    if not aim:
        return kind, shorten(f"{name} {quote(arguments)}")
    if kind in {"command", "subagent", "web_search"}:
        return kind, shorten(aim)
    return kind, shorten(f"{name} {aim}")


def keep_call(calls: dict[str, C], call_id: str, call: C) -> None:
    """Remember an open call until its result comes; the oldest is forgotten for one too many."""
    if len(calls) >= MAX_OPEN_CALLS:
        del calls[next(iter(calls))]
    calls[call_id] = call


def describe_plan(steps: Sequence[tuple[str, bool]]) -> tuple[str, str]:
    """The title and detail of a plan: how far it is, what is next, and every step."""
    done = sum(finished for _, finished in steps)
    following = next((text for text, finished in steps if not finished), "")
    title = f"Plan: {done} of {len(steps)} done" + (f", next: {following}" if following else "")
    lines = "\n".join(
        f"{'✓' if finished else '·'} {shorten(text)}" for text, finished in steps[:50]
    )
    return shorten(title), clip(lines)


def quote(arguments: msgspec.Raw) -> str:
    """Arguments as they were written, as far as a title can show them; empty, if there are none."""
    text = str(memoryview(arguments)[: TITLE_CHARS * 8], "utf-8", "replace")
    return "" if text in {"{}", "null"} else text


def _aim(kind: ActionKind, target: Target, cwd: Path) -> str:
    path = target.file_path or target.path
    where = relativize_path(path, cwd) if path else ""
    match kind:
        case "command":
            return relativize_command(target.command, cwd)
        case "file_change":
            return where
        case "subagent":
            return target.description
        case "web_search":
            return target.query or target.url
        case _:
            return target.pattern or where or target.query or target.url or target.command
