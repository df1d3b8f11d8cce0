"""Reads `/engine`, `/project` and `@branch` in front of a prompt, and leaves the rest as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from takopi.core.errors import Refused

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Directives:
    """What the first words of a message ask for, and what it says besides.

    Names are spelled as they were given to the parser, `words` as the person wrote them.
    """

    prompt: str
    engine: str | None = None
    project: str | None = None
    branch: str | None = None
    words: tuple[str, ...] = ()


@dataclass(slots=True)
class _Prefix:
    """The directives at the beginning of a text, and where what follows them begins."""

    engines: list[tuple[str, str]]
    projects: list[tuple[str, str]]
    branches: list[tuple[str, str]]
    words: list[str]
    end: int


def parse_directives(
    text: str, *, engines: Iterable[str], projects: Iterable[str], bot_name: str | None
) -> Directives:
    """The directives of the first line that is not empty, and the prompt byte for byte.

    `bot_name` is the bot's own, without the @. Two directives of a kind are refused.
    """
    prefix = _scan(text, engines=engines, projects=projects, bot_name=bot_name)
    return Directives(
        prompt=text[prefix.end :],
        engine=_only(prefix.engines, "engine"),
        project=_only(prefix.projects, "project"),
        branch=_only(prefix.branches, "branch"),
        words=tuple(prefix.words),
    )


def skip_directives(
    text: str, *, engines: Iterable[str], projects: Iterable[str], bot_name: str | None
) -> Directives:
    """The same where directives do not count: the first of each kind, and nothing is refused."""
    prefix = _scan(text, engines=engines, projects=projects, bot_name=bot_name)
    return Directives(
        prompt=text[prefix.end :],
        engine=prefix.engines[0][0] if prefix.engines else None,
        project=prefix.projects[0][0] if prefix.projects else None,
        branch=prefix.branches[0][0] if prefix.branches else None,
        words=tuple(prefix.words),
    )


def _scan(
    text: str, *, engines: Iterable[str], projects: Iterable[str], bot_name: str | None
) -> _Prefix:
    prefix = _Prefix([], [], [], [], 0)
    known = {name.lower(): (name, prefix.projects) for name in projects}
    known |= {name.lower(): (name, prefix.engines) for name in engines}
    own = None if bot_name is None else bot_name.lower()
    first = _WORD.search(text)
    if first is None:
        return prefix
    line_end = text.find("\n", first.start()) + 1 or len(text)
    for word in _WORD.finditer(text, first.start(), line_end):
        if not _take(word[0], prefix, known=known, own=own):
            # Where nothing was taken, the text has not even lost the space in front.
            prefix.end = word.start() if prefix.end else 0
            return prefix
        prefix.end = word.end()
    prefix.end = line_end
    return prefix


def _take(
    word: str,
    prefix: _Prefix,
    *,
    known: dict[str, tuple[str, list[tuple[str, str]]]],
    own: str | None,
) -> bool:
    if word.startswith("@") and len(word) > 1:
        if word[1:].lower() != own:
            prefix.branches.append((word[1:], word))
            prefix.words.append(word)
        return True
    if not word.startswith("/"):
        return False
    name, at, bot = word[1:].lower().partition("@")
    if name not in known or (at and bot != own):
        return False
    spelled, found = known[name]
    found.append((spelled, word))
    prefix.words.append(word)
    return True


def _only(found: list[tuple[str, str]], kind: str) -> str | None:
    if len(found) > 1:
        plural = "branches" if kind == "branch" else f"{kind}s"
        words = " and ".join(word for _, word in found)
        raise Refused(f"{words} name {len(found)} {plural}", way_out=f"name one {kind} only")
    return found[0][0] if found else None
