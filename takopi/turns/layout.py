"""Where a session lies on disk, which turn is the current one, and what its small files say.

    .teddy/{config.yaml, memos.yaml, global.context, prompts/}
    .teddy/<YYYYMMDD-name>/session.context
    .teddy/<YYYYMMDD-name>/<NN>/{input.md, system_prompt.xml, plan.md, report.md, meta.yaml,
                                 turn.context, execution.jsonl}

Every file is replaced whole. Turns are folders with a number for a name; a copy such as
`02-branch-01` is somebody's own and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeVar

import msgspec

from takopi.core.errors import Refused
from takopi.kit.atomic import replace_file

FOLDER = ".teddy"
FILE_MODE = 0o644

T = TypeVar("T")

_TURN = re.compile(r"\d{2,}")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SESSION = re.compile(r"\d{8}-.+")


class Meta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The ledger of a turn: who it is, what it follows, and who waits for its conclusion."""

    turn_id: str
    parent_turn_id: str | None = None
    caller_turn_id: str | None = None
    agent: str = ""
    created: str = ""
    user_request: str = ""
    model: str = ""
    replan_of: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`.teddy/config.yaml`."""

    preview_command: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """The folder of one turn."""

    folder: Path

    @property
    def id(self) -> str:
        """Its name in the ledger: the number."""
        return self.folder.name

    @property
    def session(self) -> Session:
        """The session it belongs to."""
        return Session(self.folder.parent)

    @property
    def root(self) -> Path:
        """The project."""
        return self.folder.parents[2]

    def path(self, name: str) -> Path:
        """One of its files."""
        return self.folder / name

    def has(self, name: str) -> bool:
        """Whether it has that file."""
        return self.path(name).is_file()

    def relative(self, name: str) -> str:
        """One of its files as context files name it."""
        return f"{FOLDER}/{self.session.name}/{self.id}/{name}"

    def meta(self) -> Meta:
        """Its ledger; a turn without one stands for itself."""
        if not self.has("meta.yaml"):
            return Meta(turn_id=self.id)
        return read_yaml(self.path("meta.yaml"), Meta)

    def next(self) -> Turn:
        """The turn after it, which may not be there yet."""
        return Turn(self.folder.with_name(f"{int(self.id) + 1:02d}"))


@dataclass(frozen=True, slots=True)
class Session:
    """The folder of one session."""

    folder: Path

    @property
    def name(self) -> str:
        """Its name, with the day it began."""
        return self.folder.name

    def turn(self, turn_id: str) -> Turn:
        """The turn of that number."""
        return Turn(self.folder / turn_id)

    def turns(self) -> list[Turn]:
        """All turns, in their order."""
        found = [one for one in self.folder.iterdir() if _TURN.fullmatch(one.name) and one.is_dir()]
        return [Turn(one) for one in sorted(found, key=lambda one: int(one.name))]

    def latest(self) -> Turn:
        """The turn with the highest number."""
        if turns := self.turns():
            return turns[-1]
        raise Refused(
            f"the session {self.name} has no turn", way_out="begin another: takopi session new NAME"
        )


def find_root(cwd: Path) -> Path:
    """The project of a folder: the folder itself, or the one whose `.teddy/` it lies in."""
    inside = next((one for one in (cwd, *cwd.parents) if one.name == FOLDER), None)
    return cwd if inside is None else inside.parent


def session_folder(root: Path, name: str, *, today: date) -> Path:
    """Where a new session of that name goes; `Refused` if the name is none or taken."""
    if not _NAME.fullmatch(name) or len(name) > 60:
        raise Refused(
            f'"{name}" cannot name a session',
            way_out="use small letters, digits and hyphens, like implement-auth-flow",
        )
    folder = root / FOLDER / f"{today:%Y%m%d}-{name}"
    if folder.exists():
        raise Refused(f"there is a session {folder.name} already", way_out="choose another name")
    return folder


def find_sessions(root: Path) -> list[Session]:
    """All sessions of a project, the one that was begun last at the end."""
    try:
        folders = [one for one in (root / FOLDER).iterdir() if _SESSION.fullmatch(one.name)]
    except FileNotFoundError:
        return []
    sessions = [Session(one) for one in folders if one.is_dir()]
    return sorted(sessions, key=lambda one: (one.name[:8], _begun(one), one.name))


def _begun(session: Session) -> str:
    try:
        return session.turn("01").meta().created
    except Refused:
        return ""  # one damaged ledger must not hide the other sessions


def find_turn(cwd: Path, *, session: str | None = None) -> Turn:
    """The turn that a command is about.

    The one the folder lies in, else the latest of the session it lies in, else the latest of the
    newest session; `session` chooses one by its name, with or without the day.
    """
    root = find_root(cwd)
    if session is None:
        inside = cwd.relative_to(root).parts if cwd.is_relative_to(root) else ()
        if len(inside) > 2 and inside[0] == FOLDER and _TURN.fullmatch(inside[2]):
            return Turn(root / FOLDER / inside[1] / inside[2])
        if len(inside) > 1 and inside[0] == FOLDER and _SESSION.fullmatch(inside[1]):
            return Session(root / FOLDER / inside[1]).latest()
    found = [
        one
        for one in find_sessions(root)
        if session is None or session in {one.name, one.name.partition("-")[2]}
    ]
    if not found:
        wanted = "no session here yet" if session is None else f"no session {session} here"
        raise Refused(f"there is {wanted}", way_out="begin one: takopi session new NAME")
    return found[-1].latest()


def read_text(path: Path) -> str:
    """A file's text, however it is encoded; empty if it is not there."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def write_text(path: Path, text: str) -> None:
    """Replace a file whole."""
    replace_file(path, text.encode("utf-8", "surrogatepass"), mode=FILE_MODE)


def read_context(path: Path) -> tuple[str, ...]:
    """The paths that a context file names, each once."""
    lines = (line.strip() for line in read_text(path).splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))


def write_context(path: Path, entries: Iterable[str]) -> None:
    """Write a context file."""
    write_text(path, "".join(f"{entry}\n" for entry in entries))


def read_yaml(path: Path, shape: type[T]) -> T:
    """What a YAML file says; `Refused` if it is not of that shape."""
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=shape)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise Refused(f"{path} cannot be used: {error}", way_out="mend it by hand") from error


def write_yaml(path: Path, value: object) -> None:
    """Write a YAML file in the order of the fields."""
    replace_file(path, to_yaml(value), mode=FILE_MODE)


def to_yaml(value: object) -> bytes:
    """A value as YAML, in the order of its fields."""
    return msgspec.yaml.encode(value)


def read_settings(root: Path) -> Settings:
    """What the person has set for this project."""
    path = root / FOLDER / "config.yaml"
    return read_yaml(path, Settings) if path.is_file() and path.read_bytes().strip() else Settings()
