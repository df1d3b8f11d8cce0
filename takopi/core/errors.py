"""Every error takopi raises on purpose, one class per reaction.

    TakopiError                 what went wrong, and the way out
    ├── Refused                 a person asked for what cannot be done: tell them (exit 1)
    │   ├── RefusedByModel      a model will not answer this, however often it is asked
    │   └── PlanInvalid         a plan failed its checks, and nothing of it was done (exit 3)
    ├── Unfit                   this machine lacks something: say what mends it (exit 2)
    │   ├── CannotStart         a program could not be started
    │   └── NotConfigured       no model can be asked: name the key or the command that mends it
    ├── ConfigInvalid           the config has problems: list them all, keep the old one (exit 78)
    ├── Unreachable             the other side did not answer: try again later
    ├── TryLater                the chat's server wants a pause: wait as told, nothing was done
    ├── Conflict                somebody else receives what is meant for this bot: say so, go on
    ├── BadToken                the chat's server does not know this bot: stop (exit 78)
    ├── ChatGone                the bot cannot speak in this chat: hold back what waits for it
    │   └── ChatMoved           the chat has another number now: follow it
    ├── Rejected                the chat's server will not take this as it is: say it another way
    ├── UnusableAnswer          a model's answer is of no use: keep the question, offer to ask again
    ├── StoreFailed             nothing was written: confirm nothing, try again later
    │   └── StoreUnfit          the database is damaged or newer than this takopi: do not go on
    └── ChildLost               a child's warden vanished: its run has failed

An error carries facts. The sentence a person reads is put together where it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class TakopiError(Exception):
    """Something that was foreseen. `what` says what happened, `way_out` what can be done."""

    exit_code = 1

    def __init__(self, what: str, *, way_out: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.way_out = way_out


class Refused(TakopiError):
    """A person asked for something that cannot be done as asked."""


class RefusedByModel(Refused):
    """A model, or the API before it, will not answer this question."""


class PlanInvalid(Refused):
    """A plan failed its checks: nothing of it was done."""

    exit_code = 3


class Unfit(TakopiError):
    """This machine lacks something that is needed."""

    exit_code = 2


class CannotStart(Unfit):
    """A program could not be started; `errno` is the system's reason."""

    def __init__(self, what: str, *, errno: int, way_out: str = "") -> None:
        super().__init__(what, way_out=way_out)
        self.errno = errno


class NotConfigured(Unfit):
    """No model can be asked as takopi is set up; `way_out` says what to set or install."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the config: where, what, and the way out."""

    key: str
    what: str
    way_out: str = ""


class ConfigInvalid(TakopiError):
    """The config cannot be used; `problems` has all of them, never only the first."""

    exit_code = 78

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{p.key}: {p.what}" if p.key else p.what for p in problems))
        self.problems = problems


class Unreachable(TakopiError):
    """The other side of a connection did not give an answer.

    `maybe_applied` is False only when the request cannot have reached it.
    """

    exit_code = 2

    def __init__(self, what: str, *, maybe_applied: bool) -> None:
        super().__init__(what)
        self.maybe_applied = maybe_applied


class TryLater(TakopiError):
    """Too much was asked of the chat's server; `retry_after_s` is how long it wants to be left."""

    exit_code = 2

    def __init__(self, what: str, *, retry_after_s: float) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


class Conflict(TakopiError):
    """Somebody else receives the messages of this bot."""


class BadToken(TakopiError):
    """The chat's server does not know this bot."""

    exit_code = 78


class ChatGone(TakopiError):
    """The bot is not in this chat, or may not speak there."""


class ChatMoved(ChatGone):
    """The chat goes on under `chat_id`."""

    def __init__(self, what: str, *, chat_id: int) -> None:
        super().__init__(what)
        self.chat_id = chat_id


Rejection = Literal[
    "not_modified", "not_found", "no_text", "topic_gone", "topic_closed", "query_too_old", "other"
]


class Rejected(TakopiError):
    """The chat's server refuses this request, and would refuse it again; nothing was done."""

    def __init__(self, what: str, *, reason: Rejection = "other", way_out: str = "") -> None:
        super().__init__(what, way_out=way_out)
        self.reason: Rejection = reason


class UnusableAnswer(TakopiError):
    """A model answered, but with nothing, with too much, or not in the form that was asked for."""


class StoreFailed(TakopiError):
    """The store did not take a write: nothing of it may be confirmed to anybody."""

    exit_code = 2


class StoreUnfit(StoreFailed):
    """The database cannot be used by this takopi at all."""


class ChildLost(TakopiError):
    """The process that watched over a child vanished, and the child was ended with it."""
