"""Puts input.md together: everything that an agent gets to know for one turn, in one file."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from takopi.turns.ignore import walk
from takopi.turns.layout import FOLDER, Turn, read_context
from takopi.turns.memos import read_memos
from takopi.turns.render import fence, link

MAX_ENTRIES = 10_000
"""How many files the tree shows; an agent reads no longer one."""


@dataclass(frozen=True, slots=True)
class Context:
    """The three circles of files that an agent knows."""

    turn: tuple[str, ...]
    session: tuple[str, ...]
    project: tuple[str, ...]

    def all(self) -> tuple[str, ...]:
        """Each file once: the turn's, then the session's, then those of every session."""
        return tuple(dict.fromkeys((*self.turn, *self.session, *self.project)))


def read_circles(turn: Turn) -> Context:
    """What the context files of a turn say."""
    return Context(
        turn=read_context(turn.path("turn.context")),
        session=read_context(turn.session.folder / "session.context"),
        project=read_context(turn.root / FOLDER / "global.context"),
    )


def make_payload(turn: Turn, *, environ: Mapping[str, str], max_file_bytes: int) -> str:
    """The text of input.md as things stand now."""
    root, context = turn.root, read_circles(turn)
    parts = [
        "# Agent Invocation Payload",
        _system(root, environ),
        f"## 2. Project Structure\n\n{fence(_tree(root), 'text')}",
    ]
    if memos := read_memos(root):
        parts.append("## 3. Memos\n\n" + "\n".join(f"- {memo}" for memo in memos))
    parts.append(_summary(context))
    contents = [_resource(root, path, max_bytes=max_file_bytes) for path in context.all()]
    parts.append("\n\n".join(["## 5. Resource Contents", *(contents or ["*(none)*"])]))
    return "\n\n".join(parts) + "\n"


def _system(root: Path, environ: Mapping[str, str]) -> str:
    lines = (
        f"- **CWD:** {root}",
        f"- **OS:** {platform.system()} {platform.release()}",
        f"- **Shell:** {environ.get('SHELL', 'sh')}",
    )
    return "## 1. System Information\n\n" + "\n".join(lines)


def _tree(root: Path) -> str:
    lines = [f"{root.name}/"]
    for count, (path, is_folder) in enumerate(walk(root)):
        if count == MAX_ENTRIES:
            lines.append(f"… (more than {MAX_ENTRIES} entries)")
            break
        above, _, name = path.rpartition("/")
        depth = above.count("/") + 2 if above else 1
        lines.append(f"{'  ' * depth}{_printable(name)}{'/' if is_folder else ''}")
    return "".join(f"{line}\n" for line in lines)


def _printable(name: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)


def _summary(context: Context) -> str:
    circles = (("Turn", context.turn), ("Session", context.session), ("Global", context.project))
    parts = [f"### {name}\n{_listed(paths)}" for name, paths in circles]
    return "\n\n".join(["## 4. Context Summary", *parts])


def _listed(paths: Iterable[str]) -> str:
    return "\n".join(f"- {link(path)}" for path in paths) or "*(none)*"


def _resource(root: Path, path: str, *, max_bytes: int) -> str:
    heading = f"### {link(path)}"
    try:
        real = (root / path).resolve()
        if not real.is_relative_to(root.resolve()):
            return f"{heading}\n*(outside the project, not shown)*"
        with real.open("rb") as file:
            data = file.read(max_bytes + 1)
            size = real.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such path"
        return f"{heading}\n*(cannot be read: {reason})*"
    text = data[:max_bytes].decode("utf-8", "replace")
    shown = f"{heading}\n{fence(text, real.suffix.removeprefix('.'))}"
    if len(data) > max_bytes:
        return f"{shown}\n*(cut: the first {max_bytes} of {size} bytes)*"
    return shown
