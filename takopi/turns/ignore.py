"""Walks a project and leaves out what `.gitignore` and `.teddyignore` say, in that order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NAMES = (".gitignore", ".teddyignore")
ALWAYS = frozenset({".git", ".teddy"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern: what it matches from the root on, and whether it takes in or leaves out."""

    pattern: re.Pattern[str]
    ignores: bool
    folders_only: bool


def read_rules(text: str, *, prefix: str) -> list[Rule]:
    """The rules of one file; `prefix` is its folder from the root on, with a slash at its end."""
    rules: list[Rule] = []
    for line in text.splitlines():
        pattern = line.rstrip() if not line.endswith("\\ ") else line
        if not pattern or pattern.startswith("#"):
            continue
        ignores = not pattern.startswith("!")
        pattern = pattern.removeprefix("!").removeprefix("\\")
        folders_only = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        anywhere = "/" not in pattern
        body = _translate(pattern.lstrip("/"))
        expression = re.escape(prefix) + ("(?:.*/)?" if anywhere else "") + body
        try:
            rules.append(Rule(re.compile(expression, re.DOTALL), ignores, folders_only))
        except re.error:
            continue  # a pattern that is none matches nothing, as in git
    return rules


def _translate(pattern: str) -> str:
    pieces = re.findall(r"\*\*/|/\*\*|\*+|\?|\[!?\]?[^\]]*\]|\\.|.", pattern, re.DOTALL)
    return "".join(map(_translate_piece, pieces))


def _translate_piece(piece: str) -> str:
    match piece[0]:
        case _ if piece == "**/":
            return "(?:.*/)?"
        case _ if piece == "/**":
            return "/.*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case "[" if len(piece) > 2:
            inside = piece[1:-1].replace("\\", "\\\\")
            return f"[^{inside[1:]}]" if inside[0] == "!" else f"[{inside}]"
        case "\\" if len(piece) == 2:
            return re.escape(piece[1])
        case _:
            return re.escape(piece)


def walk(root: Path) -> Iterator[tuple[str, bool]]:
    """Every path from the root on that is not left out, sorted, and whether it is a folder."""
    yield from _walk(root, "", [])


def _walk(folder: Path, prefix: str, rules: list[Rule]) -> Iterator[tuple[str, bool]]:
    for name in NAMES:
        path = folder / name
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "replace")
            rules = [*rules, *read_rules(text, prefix=prefix)]
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = prefix + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in ALWAYS or _left_out(path, rules, is_folder=is_folder):
            continue
        yield path, is_folder
        if is_folder:
            yield from _walk(Path(entry.path), f"{path}/", rules)


def _left_out(path: str, rules: list[Rule], *, is_folder: bool) -> bool:
    for rule in reversed(rules):
        if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
            return rule.ignores
    return False
