"""Where the sessions of a folder stand, and where a new one goes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

from takopi.core.errors import Refused
from takopi.turns import journal
from takopi.turns.following import settle
from takopi.turns.hold import is_held
from takopi.turns.layout import Turn, find_turn, session_folder

MOST_NAMES = 100
MAX_NAME = 60


def begun(turn: Turn) -> Literal["executing", "interrupted"] | None:
    """Whether a turn is being carried out, here or in a terminal, or was until a crash."""
    if journal.read_past(turn) is None:
        return None
    return "executing" if is_held(turn.session) else "interrupted"


def latest(root: Path) -> Turn:
    """The turn of the newest session that is to be worked on."""
    return settle(find_turn(root))


def free_folder(root: Path, name: str) -> Path:
    """The folder of a new session; a name that is taken gets a number."""
    today = datetime.now().astimezone().date()
    for number in range(2, MOST_NAMES):
        try:
            return session_folder(root, name, today=today)
        except Refused:
            ending = f"-{number}"
            stem = name.removesuffix(f"-{number - 1}")[: MAX_NAME - len(ending)].strip("-")
            name = f"{stem}{ending}"
    return session_folder(root, name, today=today)
