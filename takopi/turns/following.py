"""Builds the turn after one beside the others, and gives it its name when that one is reported.

After a crash before the report the hidden folder is built anew, and after one behind it the folder
only needs its name.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from takopi.kit.atomic import sync_folder
from takopi.turns.agents import read_prompt
from takopi.turns.layout import (
    Turn,
    read_context,
    read_text,
    write_context,
    write_text,
    write_yaml,
)
from takopi.turns.outcome import Done
from takopi.turns.transition import Start, next_start


def settle(turn: Turn) -> Turn:
    """The turn that is to be worked on: a reported one is followed by the next."""
    if not turn.has("report.md"):
        return turn
    following, hidden = turn.next(), _hidden(turn)
    if not following.folder.exists():
        if not hidden.is_dir():
            build_next(turn, (), report_path=turn.relative("report.md"))
        try:
            hidden.rename(following.folder)
        except OSError:
            # Somebody who only wanted to look was faster.
            if not following.folder.exists():
                raise
            shutil.rmtree(hidden, ignore_errors=True)
        sync_folder(turn.session.folder)
    return following


def build_next(
    turn: Turn,
    done: tuple[Done, ...],
    *,
    report_path: str | None,
    replan_of: str | None = None,
    request: str = "",
) -> None:
    """Put the next turn together beside the others, where nobody takes it for one.

    `request` is what it is to be planned with, as far as that is known already.
    """
    hidden = _hidden(turn)
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir()
    start = next_start(
        _start_of(turn),
        turn.next().id,
        done=done,
        report=report_path,
        prompt_of=lambda agent: read_prompt(turn.root, agent),
        turn_of=lambda turn_id: _start_of(turn.session.turn(turn_id)),
        created=stamp(),
        replan_of=replan_of,
    )
    fill(hidden, replace(start, meta=msgspec.structs.replace(start.meta, user_request=request)))


def fill(folder: Path, start: Start) -> None:
    """Write the files that a turn starts with."""
    write_text(folder / "system_prompt.xml", start.prompt)
    write_context(folder / "turn.context", start.context)
    write_yaml(folder / "meta.yaml", start.meta)


def _start_of(turn: Turn) -> Start:
    context = read_context(turn.path("turn.context"))
    return Start(turn.meta(), context, read_text(turn.path("system_prompt.xml")))


def _hidden(turn: Turn) -> Path:
    return turn.session.folder / f".{turn.next().id}"


def stamp() -> str:
    """The time now, as the ledgers and reports name it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
