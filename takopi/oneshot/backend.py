"""What every way to a model has in common: the text it brings, its bounds, and its failures."""

from __future__ import annotations

import re
from typing import Protocol

from takopi.core.errors import (
    NotConfigured,
    RefusedByModel,
    TakopiError,
    Unreachable,
    UnusableAnswer,
)

MAX_ANSWER_CHARS = 1024 * 1024
MAX_RETRIES = 2
"""How often a way to a model tries again by itself; the caller's deadline ends it earlier."""

_SAID_CHARS = 300
# Late, in conflict, too early, too many: the same question may be answered a little later.
_PASSING = frozenset({408, 409, 425, 429})
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Backend(Protocol):
    """One way to a model. Its text may be empty: whether that will do is not known here."""

    async def complete(self, system: str, user: str) -> str:
        """The model's text, whole."""
        ...


def check_stop(reason: str | None, *, explanation: str | None = None) -> None:
    """Refuse what is not a whole answer, by the reason that the model stopped for."""
    if reason == "refusal":
        raise RefusedByModel(
            one_line(f"the model declined to answer: {explanation}")
            if explanation
            else "the model declined to answer",
            way_out="put the question differently",
        )
    if reason in {"max_tokens", "model_context_window_exceeded"}:
        raise too_long()


def too_long() -> UnusableAnswer:
    """The error for an answer beyond all bounds."""
    return UnusableAnswer("the model's answer is too long", way_out="ask for less at a time")


def fault_of(status: int | None, said: str, *, way_in: str) -> TakopiError:
    """The error for a failed call, by its HTTP status; `way_in` mends a key that is not taken."""
    what = one_line(said) or f"the model could not be asked (status {status or 'unknown'})"
    if status in {401, 403}:
        return NotConfigured(what, way_out=way_in)
    if status is not None and 400 <= status < 500 and status not in _PASSING:
        return RefusedByModel(what, way_out="see the [oneshot] table of takopi.toml")
    return Unreachable(what, maybe_applied=True)


def one_line(text: str) -> str:
    """`text` on one line of bounded length, with nothing in it that a terminal obeys."""
    plain = _ANSI.sub("", text[: _SAID_CHARS * 4])
    start = "".join(char if char.isprintable() else " " for char in plain)
    line = " ".join(start.split())
    return line if len(line) <= _SAID_CHARS else line[: _SAID_CHARS - 1].rstrip() + "…"
