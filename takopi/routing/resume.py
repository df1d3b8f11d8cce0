"""Finds the line that names a thread, and takes such lines out of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from takopi.core.ids import EngineId, ResumeToken

CONTINUE = "continue"
"""What a thread is told where a person only said which one to go on with."""

_LINE_CHARS = 500
"""Longer lines name no thread, and are not searched."""


class Resumable(Protocol):
    """The part of an engine that knows how its resume lines look."""

    @property
    def id(self) -> EngineId:
        """The name it goes by in chat and config."""
        ...

    def parse_resume(self, text: str) -> ResumeToken | None:
        """The last resume line of this engine in a text, if there is one."""
        ...


def find_resume(engines: Sequence[Resumable], text: str) -> ResumeToken | None:
    """The thread that the last resume line in `text` names, whichever engine's it is."""
    lines = [short for line in text.splitlines() if (short := _trim(line))]
    joined = "\n".join(lines)
    found = [(engine, token) for engine in engines if (token := engine.parse_resume(joined))]
    if len(found) < 2:
        return found[0][1] if found else None
    named = [engine for engine, _ in found]
    return next(token for line in reversed(lines) if (token := _read(named, line)))


def strip_resume_lines(engines: Sequence[Resumable], text: str) -> str:
    """`text` without its resume lines, and without the line breaks that these leave at its ends.

    A text that has none comes back as it was.
    """
    if find_resume(engines, text) is None:
        return text
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not _read(engines, _trim(line))).strip("\r\n")


def resumed_prompt(engines: Sequence[Resumable], text: str) -> str:
    """What a thread that goes on is told: `continue`, where nothing but resume lines was said."""
    prompt = strip_resume_lines(engines, text)
    return prompt if prompt.strip() else CONTINUE


def _trim(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _LINE_CHARS else ""


def _read(engines: Sequence[Resumable], line: str) -> ResumeToken | None:
    if not line:
        return None
    return next((token for engine in engines if (token := engine.parse_resume(line))), None)
