"""Reads plan.md: a plan, or everything that is wrong with its form, line by line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, get_args

from takopi.turns.blocks import Block, bare, read_blocks
from takopi.turns.keys import MAX_TIMEOUT_S, Keys, read_env, read_keys, read_path, read_timeout
from takopi.turns.plan import (
    Action,
    Chat,
    Conclude,
    Create,
    Edit,
    Execute,
    Invoke,
    Kind,
    Memo,
    Plan,
    Prune,
    Read,
    Research,
    Swap,
)

KINDS: tuple[Kind, ...] = get_args(Kind)
SECTIONS = ("Rationale", "Memos", "Action Plan")
KNOWN: dict[Kind, frozenset[str]] = {
    "CREATE": frozenset({"file path", "description"}),
    "READ": frozenset({"resource", "description"}),
    "PRUNE": frozenset({"resource", "description"}),
    "EDIT": frozenset({"file path", "description"}),
    "EXECUTE": frozenset({"description", "expected outcome", "cwd", "env", "timeout"}),
    "RESEARCH": frozenset({"description"}),
    "CHAT_WITH_USER": frozenset(),
    "INVOKE": frozenset({"agent", "handoff resources"}),
    "CONCLUDE": frozenset({"handoff resources"}),
}

T = TypeVar("T")

_ACTION = re.compile(r"[`*]*([A-Z][A-Z_]*[A-Z])[`*]*:?[`*]*")
_ATTEMPT = re.compile(r"`[A-Z][A-Z_]*[A-Z]`.*")
MARKER = re.compile(r" {0,3}(?:#{1,6}[ \t]*)?[`*]*(FIND|REPLACE):?[`*]*:?[ \t]*")
_MEMO = re.compile(r"\[([+-])\][ \t]*(?:(?:ADD|REMOVE):[ \t]*)?(.*?)(?:[ \t]+#[ \t]+(.*?))?[ \t]*")


@dataclass(frozen=True, slots=True)
class Fault:
    """Where the form is broken: what was expected, what is there instead."""

    line: int
    expected: str
    found: str

    def __str__(self) -> str:
        return f"line {self.line}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class Malformed:
    """A text that is no plan."""

    faults: tuple[Fault, ...]


def action_kind(words: str) -> Kind | None:
    """The action that a heading announces, if it does."""
    found = _ACTION.fullmatch(words.strip())
    return next((kind for kind in KINDS if found and found[1] == kind), None)


def section_name(words: str) -> str | None:
    """The section that a heading opens, if it is one of a plan."""
    wanted = words.strip("*`: \t").lower()
    return next((name for name in SECTIONS if name.lower() == wanted), None)


def parse(text: str) -> Plan | Malformed:
    """The plan that a text is, or all faults of its form."""
    return _Parser(text.removeprefix("\ufeff")).parse()


class _Broken(Exception):
    """One part cannot be read; its fault is noted, and the next part is tried."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.lines, self.blocks = read_blocks(text)
        self.faults: list[Fault] = []

    def parse(self) -> Plan | Malformed:
        top = next((n for n, b in enumerate(self.blocks) if b.kind == "heading"), None)
        if top is None or self.blocks[top].level != 1 or not self.blocks[top].text:
            found = self.describe(None if top is None else self.blocks[top])
            line = 1 if top is None else self.blocks[top].start + 1
            return Malformed((Fault(line, "a title (`# …`) first", found),))
        title = self.blocks[top]
        sections = self.cut(self.blocks[top + 1 :])
        header = self.header([b for b in sections.pop("", []) if b.kind != "rule"])
        rationale = _attempt(lambda: self.rationale(sections.get("Rationale")), "")
        memos = _attempt(lambda: self.memos(sections.get("Memos", [])), tuple[Memo, ...]())
        actions = self.actions(sections.get("Action Plan"))
        if self.faults:
            return Malformed(tuple(sorted(self.faults, key=lambda fault: fault.line)))
        return Plan(
            title=title.text,
            status=header.get("status", ""),
            plan_type=header.get("plan type", ""),
            agent=header.get("agent", ""),
            rationale=rationale,
            memos=memos,
            actions=actions,
        )

    def cut(self, blocks: list[Block]) -> dict[str, list[Block]]:
        """The blocks of each section, its heading first; what comes before the first is ""."""
        sections: dict[str, list[Block]] = {"": []}
        name = ""
        for block in blocks:
            if block.kind == "heading" and block.level <= 2 and name != "Action Plan":
                opened = section_name(block.text) if block.level == 2 else None
                if opened is None or opened in sections:
                    rest = [one for one in SECTIONS if one not in sections]
                    wanted = " or ".join(f"`## {one}`" for one in rest)
                    self.note(block, wanted)
                    continue
                name = opened
                sections[name] = []
            sections[name].append(block)
        return sections

    def header(self, blocks: list[Block]) -> dict[str, str]:
        values: dict[str, str] = {}
        for block in blocks:
            if block.kind != "list":
                self.note(block, "`- **Status:** …` and the like, or a section")
                continue
            keys = read_keys(self.lines, block, known=None)
            for name, entry in keys.found.items():
                if name not in {"status", "plan type", "agent"}:
                    self.faults.append(
                        Fault(entry.line + 1, "Status, Plan Type or Agent", f"`{entry.name}`")
                    )
                values[name] = entry.value
            if keys.rest < block.end:
                self.faults.append(self.at_line(keys.rest, "`- **Key:** value`"))
        return values

    def rationale(self, blocks: list[Block] | None) -> str:
        if blocks is None:
            raise self.broken(None, "`## Rationale`")
        heading, *body = [b for b in blocks if b.kind != "rule"]
        if len(body) == 1 and body[0].kind == "fence":
            return _chomp(self.closed(body[0]).text)
        if not body:
            raise self.broken(heading, "a code fence with the reasons", found="nothing")
        if any(block.kind == "fence" for block in body):
            raise self.broken(
                body[1] if body[1:] else body[0],
                "one code fence with the reasons, and then the next section",
            )
        return "".join(self.lines[body[0].start : body[-1].end]).strip()

    def memos(self, blocks: list[Block]) -> tuple[Memo, ...]:
        body = [block for block in blocks[1:] if block.kind != "rule"]
        memos: list[Memo] = []
        for block in body:
            if block.kind != "fence":
                raise self.broken(block, "a code fence with memos")
            self.closed(block)
            for number, line in enumerate(block.text.splitlines(), block.start + 1):
                found = _MEMO.fullmatch(line.strip())
                if found and found[2]:
                    sign = "+" if found[1] == "+" else "-"
                    memos.append(Memo(sign, found[2], found[3] or ""))
                elif line.strip():
                    self.faults.append(self.at_line(number, "`[+] memo # why` or `[-] memo # why`"))
        return tuple(memos)

    def actions(self, blocks: list[Block] | None) -> tuple[Action, ...]:
        if blocks is None:
            self.faults.append(
                Fault(len(self.lines) or 1, "`## Action Plan`", "the end of the plan")
            )
            return ()
        starts = [n for n, block in enumerate(blocks) if _announces(block)]
        for block in blocks[1 : starts[0] if starts else None]:
            if block.kind != "rule":
                self.note(block, "an action such as ### `CREATE`")
        if not starts:
            self.note(blocks[0], "at least one action under `## Action Plan`", found="none")
            return ()
        actions: list[Action] = []
        for start, end in zip(starts, [*starts[1:], len(blocks)], strict=True):
            part = blocks[start:end]
            last = part[-1].end if end == len(blocks) else blocks[end].start
            with contextlib.suppress(_Broken):
                actions.append(self.action(part, last))
        return tuple(actions)

    def action(self, blocks: list[Block], end: int) -> Action:
        heading, *rest = blocks
        kind = action_kind(heading.text)
        if kind is None:
            raise self.broken(heading, f"one of {', '.join(KINDS)}")
        line = heading.start + 1
        if kind == "CHAT_WITH_USER":
            return Chat(text=self.words(heading, heading.end, end, needed=True), line=line)
        keys, body = self.keys(heading, rest, KNOWN[kind])
        match kind:
            case "INVOKE" | "CONCLUDE":
                text = self.words(heading, keys.rest or heading.end, end, needed=False)
                handoff = tuple(read_path(one) for one in keys.items("handoff resources"))
                if kind == "CONCLUDE":
                    return Conclude(handoff=handoff, text=text, line=line)
                agent = self.required(heading, keys, "agent")
                return Invoke(agent=agent, handoff=handoff, text=text, line=line)
            case _:
                body = [block for block in body if block.kind != "rule"]
                return self.plain_action(kind, heading, keys, body=body)

    def plain_action(self, kind: Kind, heading: Block, keys: Keys, *, body: list[Block]) -> Action:
        line, description = heading.start + 1, keys.get("description")
        if kind in {"READ", "PRUNE"}:
            path = read_path(self.required(heading, keys, "resource"))
            self.nothing_more(body)
            make = Read if kind == "READ" else Prune
            return make(path=path, description=description, line=line)
        if kind == "RESEARCH":
            queries = tuple(_chomp(self.fence(b, "a code fence with a query")) for b in body)
            if not any(query.strip() for query in queries):
                raise self.broken(heading, "a code fence with a query", found="none")
            return Research(queries=queries, description=description, line=line)
        if kind == "EDIT":
            path = read_path(self.required(heading, keys, "file path"))
            swaps = self.swaps(heading, body)
            return Edit(path=path, swaps=swaps, description=description, line=line)
        if not body:
            raise self.broken(heading, "a code fence", found="nothing")
        content = self.fence(body[0], "a code fence")
        self.nothing_more(body[1:])
        if kind == "CREATE":
            path = read_path(self.required(heading, keys, "file path"))
            return Create(path=path, content=content, description=description, line=line)
        if not content.strip():
            raise self.broken(heading, "a command in the code fence", found="nothing")
        return Execute(
            command=_chomp(content),
            description=description,
            expected=keys.get("expected outcome"),
            cwd=read_path(keys.get("cwd")),
            env=self.value(
                keys, "env", lambda: read_env(keys.items("env")), expected="`NAME=value`"
            ),
            timeout_s=self.value(
                keys,
                "timeout",
                lambda: read_timeout(keys.get("timeout")),
                expected=f"seconds up to {MAX_TIMEOUT_S:g}",
            ),
            line=line,
        )

    def swaps(self, heading: Block, body: list[Block]) -> tuple[Swap, ...]:
        swaps: list[Swap] = []
        find: str | None = None
        for marker, fence in zip(body[::2], [*body[1::2], None][: len(body[::2])], strict=True):
            wanted = "FIND" if find is None else "REPLACE"
            found = MARKER.fullmatch(bare(self.lines[marker.start]))
            if not found or found[1] != wanted or marker.end != marker.start + 1:
                raise self.broken(marker, f"`{wanted}:`")
            if fence is None:
                raise self.broken(marker, f"a code fence after `{wanted}:`", found="nothing")
            text = _chomp(self.fence(fence, f"a code fence after `{wanted}:`"))
            if find is None:
                if not text:
                    raise self.broken(fence, "text in the FIND block", found="nothing")
                find = text
            else:
                swaps.append(Swap(find, text))
                find = None
        if find is not None or not swaps:
            last = body[-1] if body else heading
            wanted = "`REPLACE:`" if find is not None else "`FIND:`"
            raise self.broken(last, f"{wanted} and a code fence", found="the end of the action")
        return tuple(swaps)

    def keys(
        self, heading: Block, rest: list[Block], known: frozenset[str]
    ) -> tuple[Keys, list[Block]]:
        if not rest or rest[0].kind != "list":
            return Keys({}, 0), rest
        free = action_kind(heading.text) in {"INVOKE", "CONCLUDE"}
        keys = read_keys(self.lines, rest[0], known=known if free else None)
        for name, entry in keys.found.items():
            if name not in known:
                wanted = ", ".join(sorted(known))
                self.faults.append(Fault(entry.line + 1, f"a key ({wanted})", f"`{entry.name}`"))
        if keys.twice is not None:
            self.faults.append(self.at_line(keys.twice, "each key once"))
            raise _Broken
        if not free and keys.rest < rest[0].end:
            self.faults.append(self.at_line(keys.rest, "`- **Key:** value`"))
            raise _Broken
        return keys, rest[1:]

    def value(self, keys: Keys, name: str, read: Callable[[], T], *, expected: str) -> T:
        try:
            return read()
        except ValueError as error:
            fault = Fault(keys.found[name].line + 1, expected, f"`{error}`")
            self.faults.append(fault)
            raise _Broken from error

    def required(self, heading: Block, keys: Keys, name: str) -> str:
        if value := keys.get(name):
            return value
        raise self.broken(heading, f"`- **{name.title()}:** …`", found="none")

    def fence(self, block: Block, wanted: str) -> str:
        if block.kind != "fence":
            raise self.broken(block, wanted)
        return self.closed(block).text

    def closed(self, fence: Block) -> Block:
        if fence.level < 0:
            raise self.broken(fence, "a code fence that is closed", found="one that never ends")
        return fence

    def nothing_more(self, blocks: list[Block]) -> None:
        if blocks:
            raise self.broken(blocks[0], "the next action")

    def words(self, heading: Block, start: int, end: int, *, needed: bool) -> str:
        lines = self.lines[start:end]
        while lines and re.fullmatch(r"\s*|---+\s*", lines[-1]):
            lines.pop()
        text = re.sub(r"\A(?:[ \t]*(?:\r\n|\r|\n))+", "", "".join(lines)).rstrip()
        if needed and not text:
            raise self.broken(heading, "some text", found="nothing")
        return text

    def broken(self, block: Block | None, expected: str, *, found: str = "") -> _Broken:
        self.note(block, expected, found=found)
        return _Broken()

    def note(self, block: Block | None, expected: str, *, found: str = "") -> None:
        line = len(self.lines) or 1 if block is None else block.start + 1
        self.faults.append(Fault(line, expected, found or self.describe(block)))

    def at_line(self, number: int, expected: str) -> Fault:
        return Fault(number + 1, expected, f"`{bare(self.lines[number]).strip()[:80]}`")

    def describe(self, block: Block | None) -> str:
        if block is None:
            return "the end of the plan" if self.lines else "nothing"
        if block.kind == "fence":
            return "a code fence"
        return f"`{bare(self.lines[block.start]).strip()[:80]}`"


def _chomp(text: str) -> str:
    """A fence's text without the end of its last line."""
    return re.sub(r"(?:\r\n|\r|\n)\Z", "", text)


def _announces(block: Block) -> bool:
    return (
        block.kind == "heading"
        and block.level == 3
        and (action_kind(block.text) is not None or bool(_ATTEMPT.fullmatch(block.text)))
    )


def _attempt(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except _Broken:
        return otherwise
