"""The files of open interviews: replaced whole, found again by who is asked and where.

These calls block; inside Trio they go through `trio.to_thread.run_sync`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from takopi.core.errors import Unfit
from takopi.core.ids import Scope
from takopi.interview.session import Session, decode, encode
from takopi.kit.atomic import replace_file, sync_folder

MAX_BYTES = 8 * 1024 * 1024

_NAME = re.compile(
    r"(?:([a-z]+)-)?(-?[0-9]{1,18})(?:-([0-9]{1,18})-(-?[0-9]{1,18}))?-interactive\.json"
)
_MAIN = "telegram"


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that could not be read: where it was held, and its name now."""

    scope: Scope
    aside: Path


@dataclass(frozen=True, slots=True)
class Files:
    """The folder with the files."""

    folder: Path

    def path(self, scope: Scope, user_id: int) -> Path:
        """Where the interview of a person is kept: in a private chat, by the chat alone."""
        name = f"{scope.chat_id}"
        if scope.topic_id is not None or scope.chat_id != user_id:
            name = f"{scope.chat_id}-{scope.topic_id or 0}-{user_id}"
        if scope.transport != _MAIN:
            name = f"{scope.transport}-{name}"
        return self.folder / f"{name}-interactive.json"

    def save(self, session: Session) -> None:
        """Keep the session."""
        path = self.path(session.scope, session.user_id)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, encode(session))
        except OSError as error:
            raise Unfit(
                f"the interview cannot be kept in {self.folder}: {error.strerror}",
                way_out="make room there, and press again",
            ) from error

    def remove(self, session: Session) -> None:
        """Forget the session."""
        self.path(session.scope, session.user_id).unlink(missing_ok=True)
        sync_folder(self.folder)

    def load(self) -> tuple[tuple[Session, ...], tuple[Damaged, ...]]:
        """Every session there is; what cannot be read is set aside."""
        sessions: list[Session] = []
        damaged: list[Damaged] = []
        for path in sorted(self.folder.glob("*-interactive.json")):
            named = _NAME.fullmatch(path.name)
            if named is None:
                continue
            try:
                if path.stat().st_size > MAX_BYTES:
                    raise msgspec.DecodeError("too long")
                session = decode(path.read_bytes())
                if self.path(session.scope, session.user_id) != path:
                    raise msgspec.DecodeError("of another chat")
            except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
                topic = int(named[3] or 0) or None
                scope = Scope(named[1] or _MAIN, int(named[2]), topic)
                damaged.append(Damaged(scope, _set_aside(path)))
            else:
                sessions.append(session)
        return tuple(sessions), tuple(damaged)


def _set_aside(path: Path) -> Path:
    """Rename a damaged file, never over another one."""
    number = 1
    aside = path.with_name(f"{path.name}.corrupt")
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.corrupt-{number}")
    path.rename(aside)
    sync_folder(path.parent)
    return aside
