"""What a plan says: its title, its reasons, its memos and its actions, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

Kind = Literal[
    "CREATE",
    "READ",
    "EDIT",
    "EXECUTE",
    "RESEARCH",
    "CHAT_WITH_USER",
    "PRUNE",
    "INVOKE",
    "CONCLUDE",
]


@dataclass(frozen=True, slots=True)
class Memo:
    """One change of the long-term memory: `+` adds the text, `-` takes it out."""

    sign: Literal["+", "-"]
    text: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Swap:
    """A piece of a file, and what stands there afterwards; neither has the last line's end."""

    find: str
    replace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """A new file."""

    kind: ClassVar[Kind] = "CREATE"
    path: str
    content: str
    description: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A file that the next turn shall know."""

    kind: ClassVar[Kind] = "READ"
    path: str
    description: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """A file that the next turn need not know."""

    kind: ClassVar[Kind] = "PRUNE"
    path: str
    description: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Pieces of a file that are exchanged, in this order."""

    kind: ClassVar[Kind] = "EDIT"
    path: str
    swaps: tuple[Swap, ...]
    description: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """A command of the shell. Without `timeout_s` it has the usual time."""

    kind: ClassVar[Kind] = "EXECUTE"
    command: str
    description: str = ""
    expected: str = ""
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Research:
    """Questions to the world outside."""

    kind: ClassVar[Kind] = "RESEARCH"
    queries: tuple[str, ...]
    description: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Words for the person, in markdown."""

    kind: ClassVar[Kind] = "CHAT_WITH_USER"
    text: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoke:
    """The next turn belongs to another agent, who gets these files and these words."""

    kind: ClassVar[Kind] = "INVOKE"
    agent: str
    handoff: tuple[str, ...] = ()
    text: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclude:
    """The next turn belongs to the agent that invoked this one."""

    kind: ClassVar[Kind] = "CONCLUDE"
    handoff: tuple[str, ...] = ()
    text: str = ""
    line: int = field(default=0, compare=False)


Action = Create | Read | Prune | Edit | Execute | Research | Chat | Invoke | Conclude


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One plan, whole."""

    title: str
    status: str = ""
    plan_type: str = ""
    agent: str = ""
    rationale: str
    memos: tuple[Memo, ...] = ()
    actions: tuple[Action, ...]


_NOUNS: Mapping[str, str] = {
    "CREATE": "file",
    "EDIT": "file",
    "READ": "resource",
    "PRUNE": "resource",
    "EXECUTE": "command",
    "RESEARCH": "research",
    "CHAT_WITH_USER": "message",
    "INVOKE": "handoff",
    "CONCLUDE": "handoff",
}


def amounts(plan: Plan) -> list[tuple[str, str]]:
    """How much there is of each kind of action, as in `CREATE`, `2 files`."""
    kinds = Counter(action.kind for action in plan.actions)
    return [
        (kind, f"{count} {_NOUNS[kind]}{'s' if count > 1 and kind != 'RESEARCH' else ''}")
        for kind, count in kinds.items()
    ]


def subject(action: Action) -> str:
    """What an action is about, on one line: its file, its command, its first words."""
    match action:
        case Create() | Read() | Prune() | Edit():
            return action.path
        case Execute():
            return _first_line(action.command)
        case Research():
            return _first_line(action.queries[0])
        case Invoke():
            return action.agent
        case Chat() | Conclude():
            return _first_line(action.text)


def _first_line(text: str) -> str:
    line, *more = text.strip().splitlines() or [""]
    return f"{line} …" if more else line
