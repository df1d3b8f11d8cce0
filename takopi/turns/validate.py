"""Checks a plan before anybody is asked about it, and reports everything that is wrong at once.

Actions are checked in their order over a picture of the project: a later one sees what the earlier
ones would have done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from takopi.turns.paths import normal, path_fault
from takopi.turns.plan import (
    Action,
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
    subject,
)
from takopi.turns.swaps import exchange

StrictContext = Literal["turn", "any", "off"]

MAX_QUERIES = 10
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a plan is checked against."""

    root: Path
    memos: Collection[str]
    turn_context: Collection[str]
    other_context: Collection[str] = ()
    agents: Collection[str]
    has_caller: bool
    strict_context: StrictContext = "turn"


@dataclass(slots=True)
class _Picture:
    """The project as it would be: the files that were created or edited, with their text."""

    root: Path
    texts: dict[Path, str] = field(default_factory=dict[Path, str])
    """By where a file really lies, whatever links a path goes through."""

    def put(self, path: str, text: str) -> None:
        self.texts[self.real(path)] = text

    def real(self, path: str) -> Path:
        return (self.root / path).resolve()

    def is_known(self, path: str) -> bool:
        return self.real(path) in self.texts

    def makes_folder(self, path: str) -> bool:
        return any(self.real(path) in one.parents for one in self.texts)

    def exists(self, path: str) -> bool:
        # A link that points to nothing is in the way as well.
        there = (self.root / path).exists() or (self.root / path).is_symlink()
        return there or self.is_known(path) or self.makes_folder(path)

    def is_file(self, path: str) -> bool:
        return self.is_known(path) or (self.root / path).is_file()

    def text(self, path: str) -> str | None:
        """The text of a file; None if it is not text."""
        if (known := self.texts.get(self.real(path))) is not None:
            return known
        try:
            return (self.root / path).read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            return None


def validate(plan: Plan, world: World) -> tuple[str, ...]:
    """Every reason why this plan cannot be carried out, in the plan's order."""
    return (*_memo_faults(plan.memos, world), *_Checker(world).check(plan.actions))


def query_fault(queries: tuple[str, ...]) -> str | None:
    """Why these cannot be asked, None if they can."""
    if len(queries) > MAX_QUERIES:
        return f"there are {len(queries)} queries; an action has at most {MAX_QUERIES}"
    if any(query.startswith("-") for query in queries):
        return "a query begins with `-`, which a program takes for an option"
    return None


def _memo_faults(memos: tuple[Memo, ...], world: World) -> list[str]:
    faults: list[str] = []
    known = list(world.memos)
    for memo in memos:
        if memo.sign == "+":
            if memo.text in known:
                faults.append(f"`[+] ADD` of `{memo.text}`: the memo exists already.")
            known.append(memo.text)
        elif memo.text in known:
            known.remove(memo.text)
        else:
            faults.append(f"`[-] REMOVE` of `{memo.text}`: there is no such memo.")
    return faults


class _Checker:
    def __init__(self, world: World) -> None:
        self.world = world
        self.picture = _Picture(world.root)
        self.faults: list[str] = []

    def check(self, actions: tuple[Action, ...]) -> list[str]:
        for action in actions:
            self.one(action)
        reads = {normal(one.path) for one in actions if isinstance(one, Read)}
        for one in actions:
            if isinstance(one, Prune) and normal(one.path) in reads:
                self.note(one, "the same plan READs it.")
        last = [one for one in actions if isinstance(one, Invoke | Conclude)]
        for one in last[1:]:
            self.note(one, "a plan has at most one INVOKE or CONCLUDE.")
        if last and actions[-1] is not last[-1]:
            self.note(last[-1], "it must be the last action.")
        return self.faults

    def note(self, action: Action, what: str) -> None:
        self.faults.append(f"`{action.kind}` on `{subject(action)}`: {what}")

    def one(self, action: Action) -> None:
        match action:
            case Create():
                self.guarded(action, action.path, lambda: self.create(action))
            case Edit():
                self.guarded(action, action.path, lambda: self.edit(action))
            case Read() if _URL.match(action.path):
                self.note(action, "it is an address; RESEARCH is for the world outside.")
            case Read():
                self.guarded(action, action.path, lambda: self.known_file(action, action.path))
            case Prune():
                if normal(action.path) not in map(normal, self.world.turn_context):
                    self.note(action, "the file is not in the turn's context.")
            case Execute() if normal(action.cwd) != ".":
                self.guarded(action, action.cwd, lambda: self.folder(action, action.cwd))
            case Research():
                self.research(action)
            case Invoke():
                self.agent(action)
                self.handoff(action, action.handoff)
            case Conclude():
                if not self.world.has_caller:
                    self.note(action, "no agent has invoked this one.")
                self.handoff(action, action.handoff)
            case _:
                pass

    def guarded(self, action: Action, path: str, check: Callable[[], None]) -> None:
        if fault := path_fault(self.world.root, path):
            self.note(action, f"the path {fault}.")
        else:
            check()

    def create(self, action: Create) -> None:
        if self.picture.exists(action.path):
            self.note(action, "the file exists already.")
        elif above := self.file_above(action.path):
            self.note(action, f"`{above}` is a file, not a folder.")
        else:
            self.picture.put(action.path, action.content)

    def file_above(self, path: str) -> str | None:
        parts = normal(path).split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return next((one for one in above if self.picture.is_file(one)), None)

    def edit(self, action: Edit) -> None:
        text = self.picture.text(action.path) if self.picture.is_file(action.path) else None
        if not self.picture.is_file(action.path):
            self.note(action, "the file does not exist.")
        elif text is None:
            self.note(action, "the file is not text.")
        if not self.in_context(action.path):
            self.note(action, "the file is not in the turn's context; READ it in an earlier turn.")
        if text is not None:
            after, faults = exchange(text, action.swaps)
            for fault in faults:
                self.note(action, fault)
            self.picture.put(action.path, after)
        else:
            for swap in action.swaps:
                if swap.find == swap.replace:
                    self.note(action, "REPLACE block is the same as the FIND block.")

    def in_context(self, path: str) -> bool:
        world, wanted = self.world, normal(path)
        if world.strict_context == "off" or self.picture.is_known(path):
            return True
        others = world.other_context if world.strict_context == "any" else ()
        return wanted in map(normal, (*world.turn_context, *others))

    def known_file(self, action: Action, path: str) -> None:
        if not self.picture.is_file(path):
            self.note(action, f"`{path}` does not exist, or is no file.")

    def folder(self, action: Action, path: str) -> None:
        if not self.picture.makes_folder(path) and not (self.world.root / path).is_dir():
            self.note(action, f"there is no folder `{path}`.")

    def research(self, action: Research) -> None:
        if fault := query_fault(action.queries):
            self.note(action, f"{fault}.")

    def agent(self, action: Invoke) -> None:
        if action.agent.lower() not in self.world.agents:
            known = ", ".join(sorted(self.world.agents))
            self.note(action, f"there is no such agent; there are {known}.")

    def handoff(self, action: Action, paths: tuple[str, ...]) -> None:
        for path in paths:
            if fault := path_fault(self.world.root, path):
                self.note(action, f"the path of `{path}` {fault}.")
            else:
                self.known_file(action, path)
