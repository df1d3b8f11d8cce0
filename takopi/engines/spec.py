"""What a CLI must tell takopi to become an engine: how to call it, and how to read its lines.

A `Dialect` is one run's conversation, and it is pure: lines in, vocabulary out, no I/O, no clock,
no Trio. `engines/pump.py` owns the process and everything that waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar

from takopi.config.schema import EngineSettings
from takopi.core.events import Action, Answer, Ask, Completed, Started
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The engine no longer waits for an ask."""

    ask_id: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The engine has said its last word: its stdin may be closed."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The engine waits for an answer that needs no person: these bytes go to its stdin at once."""

    data: bytes


Said: TypeAlias = Started | Action | Ask | Withdrawn | Finished | Reply


class Dialect(Protocol):
    """How one run of one CLI talks. Made anew for every run."""

    @property
    def two_way(self) -> bool:
        """Whether stdin stays open until `Finished`, for answers."""
        ...

    def opening(self) -> bytes:
        """What goes to stdin first: the prompt, in the CLI's own form."""
        ...

    def read(self, line: bytes) -> Sequence[Said]:
        """What one line of stdout means; nothing, if it means nothing to a person.

        A line that is not of the CLI's language raises `msgspec.MsgspecError` and nothing else.
        """
        ...

    def answer(self, ask: Ask, answer: Answer) -> bytes:
        """What goes to stdin when a person has decided."""
        ...

    def interrupt(self) -> bytes:
        """What goes to stdin to stop politely before any signal; empty if there is no such word."""
        ...

    def end(self, code: int, stderr: str) -> Completed:
        """What it all came to, once the process has ended with `code` (negative: a signal)."""
        ...


S = TypeVar("S", bound=EngineSettings)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """How to ask a CLI for the folder of a thread: the arguments, and how to read what it says."""

    argv: Callable[[ResumeToken], list[str]]
    folder: Callable[[bytes], Path | None]


@dataclass(frozen=True, slots=True)
class EngineSpec(Generic[S]):
    """One engine: everything that differs from one CLI to the next.

    `argv` gives the arguments after the program, `environ` has the last word on the child's
    environment. `resume_words` are the words of the resume line before the thread's id, `program`
    the words that start it where no `command` is configured; without them, its id on PATH.
    With `takes_system`, an instruction goes beside the prompt, not into the thread as a part of it.
    `whereabouts` is for a CLI that must not be asked to resume a thread in another folder.
    """

    id: EngineId
    settings_type: type[S]
    argv: Callable[[S, EngineJob], list[str]]
    dialect: Callable[[S, EngineJob], Dialect]
    resume_words: tuple[str, ...]
    install: str
    login: str
    oldest: tuple[int, ...]
    asks: bool = False
    takes_system: bool = False
    environ: Callable[[S, dict[str, str]], dict[str, str]] = lambda _settings, env: env
    program: tuple[str, ...] = ()
    whereabouts: Whereabouts | None = None

    def resume_line(self, token: ResumeToken) -> str:
        """The line that continues this thread in a terminal."""
        return " ".join((*self.resume_words, token.value))

    def parse_resume(self, text: str) -> ResumeToken | None:
        """The last resume line in `text`, with or without backticks, alone on its line."""
        words = r"[ \t]+".join(map(re.escape, self.resume_words))
        # An id never begins with a dash: that would be an option for the CLI. Nothing is tried
        # twice (`*+`), so that a line of many spaces costs no more than its length.
        line = rf"^[ \t]*+`*+[ \t]*+{words}[ \t]+([\w/][\w.:/-]*+)[ \t]*+`*+[ \t]*+\r?$"
        found = re.findall(line, text, re.MULTILINE)
        return ResumeToken(self.id, found[-1]) if found else None
