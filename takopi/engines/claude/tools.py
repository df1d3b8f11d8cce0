"""What claude's tools do, in the few words that fit on a phone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from takopi.core.events import ActionKind
from takopi.engines.tools import describe_plan
from takopi.engines.wording import DETAIL_CHARS, shorten, tail
from takopi.kit.cwd import relativize_command, relativize_path

QUESTION_TOOL = "AskUserQuestion"
PLAN_TOOL = "ExitPlanMode"
TODO_TOOL = "TodoWrite"

_KINDS: dict[str, ActionKind] = {
    "Bash": "command",
    "PowerShell": "command",
    "Edit": "file_change",
    "MultiEdit": "file_change",
    "NotebookEdit": "file_change",
    "Write": "file_change",
    "WebFetch": "web_search",
    "WebSearch": "web_search",
    "Agent": "subagent",
    "Task": "subagent",
}
_TITLES = {QUESTION_TOOL: "Question to you", PLAN_TOOL: "Plan for your approval"}
_PATHS = ("file_path", "notebook_path", "path")
_TARGETS = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "description",
    "path",
    "subject",
    "skill",
    "name",
    "subagent_type",
    "prompt",
)


@dataclass(frozen=True, slots=True)
class Call:
    """One open tool call. Its result names it by id alone, so this is what must be remembered."""

    kind: ActionKind
    title: str
    chatty: bool = False
    """Whether what it returns is worth showing when all went well."""
    plan: str | None = None
    in_background: bool = False


def describe_call(name: str, arguments: Mapping[str, object], cwd: Path) -> Call:
    """How a call of the tool `name` shows."""
    kind = _KINDS.get(name, "tool")
    target = relativize_command(target_of(arguments, cwd), cwd)
    server, _, tool = name.removeprefix("mcp__").partition("__")
    if name.startswith("mcp__") and tool:
        return Call(kind, shorten(f"{server}: {tool} {target}"), chatty=True)
    if name in _TITLES:
        plan = _text(arguments, "plan") if name == PLAN_TOOL else None
        return Call(kind, _TITLES[name], plan=plan)
    if name == TODO_TOOL and (steps := _steps(arguments.get("todos"))):
        return Call("note", describe_plan(steps)[0])
    if kind == "tool":
        return Call(kind, shorten(f"{name} {target}"))
    return Call(kind, target or shorten(name) or "tool", chatty=kind != "file_change")


def target_of(arguments: Mapping[str, object], cwd: Path) -> str:
    """The one argument that says most, on one line; empty if there is none."""
    for key in _TARGETS:
        if not (value := _text(arguments, key)):
            continue
        if key in _PATHS:
            return shorten(relativize_path(value, cwd))
        folder = _text(arguments, "path") if key == "pattern" else None
        return shorten(f"{value} in {relativize_path(folder, cwd)}" if folder else value)
    return ""


def describe_outcome(call: Call, text: str) -> str:
    """What a call returned, short."""
    if call.kind == "command":
        return tail(text)
    bare = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    return shorten(bare, DETAIL_CHARS)


def _text(arguments: Mapping[str, object], key: str) -> str | None:
    value = arguments.get(key)
    return value if isinstance(value, str) and value.strip() else None


def _steps(todos: object) -> list[tuple[str, bool]]:
    steps: list[tuple[str, bool]] = []
    for todo in cast("list[object]", todos) if isinstance(todos, list) else ():
        match todo:
            case {"content": str(text), "status": str(status)}:
                steps.append((text, status == "completed"))
            case _:
                pass
    return steps
