"""The brief of an interview: a markdown file below the folder it was made for, and nowhere else."""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
from pathlib import Path

from takopi.core.errors import Refused, Unfit
from takopi.interview.session import Session
from takopi.kit.atomic import replace_file

SLUG_CHARS = 60
TITLE_CHARS = 200
MAX_NAMES = 1000

_BRIEF = """\
# Plan: {title}

**Created:** {created}
**Session:** {session}
**Branch:** {branch}

## Task
{task}

## Requirements (Q&A)

{requirements}

## Context for Implementation

The following answers were gathered from the user to clarify requirements:
{bullets}

## Next Steps

Claude CLI was spawned with this full context to implement the task.
"""
_NOTHING = "Nothing had to be asked."


def slug(text: str) -> str:
    """`text` as a name that is safe in any path: `[a-z0-9-]`, at most 60, or nothing at all."""
    plain = unicodedata.normalize("NFKD", text[: SLUG_CHARS * 8]).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    return words[:SLUG_CHARS].strip("-")


def brief(session: Session, *, branch: str) -> str:
    """The text of the brief."""
    pairs = session.pairs()
    title = " ".join(session.task.split())[:TITLE_CHARS]
    requirements = "\n\n".join(f"**Q: {pair.question}**\nA: {pair.answer}" for pair in pairs)
    bullets = "\n".join(
        f"- {' '.join(pair.question.split())} → {' '.join(pair.answer.split())}" for pair in pairs
    )
    return _BRIEF.format(
        title=title,
        created=session.created_at,
        session=session.session_id,
        branch=branch,
        task=session.task,
        requirements=requirements or _NOTHING,
        bullets=bullets or _NOTHING,
    )


def bundled_prompt(session: Session) -> str:
    """What the engine is told once everything is answered."""
    lines = "\n\n".join(f"Q: {pair.question}\nA: {pair.answer}" for pair in session.pairs())
    parts = [session.task]
    if lines:
        parts.append(f"These requirements were clarified with the user:\n\n{lines}")
    if session.plan_path is not None:
        parts.append(f"The plan is saved at {session.plan_path}.")
    return "\n\n".join(parts)


def save_brief(session: Session, cwd: Path, *, folder: str, branch: str) -> str:
    """Write the brief, and say where, relative to `cwd` where it is below it.

    The interview's own file is written again; a file of somebody else never is.
    """
    base = cwd / folder
    try:
        goal = base / session.goal
        goal.mkdir(parents=True, exist_ok=True)
        if not Path(folder).is_absolute():
            _check_inside(goal, cwd)
        path = _own_name(goal, session)
        replace_file(path, brief(session, branch=branch).encode("utf-8", "replace"), mode=0o644)
    except OSError as error:
        raise Unfit(
            f"the plan cannot be saved in {base}: {error.strerror}",
            way_out="make that folder writable, or set interview.dir to another one",
        ) from error
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _check_inside(folder: Path, cwd: Path) -> None:
    if not folder.resolve().is_relative_to(cwd.resolve()):
        raise Refused(
            f"{folder} is a link that leads out of {cwd}",
            way_out="remove the link, or set interview.dir to another folder",
        )


def _own_name(folder: Path, session: Session) -> Path:
    for number in itertools.count(1):
        ending = "" if number == 1 else f"-{number}"
        path = folder / f"{session.description[: SLUG_CHARS - len(ending)]}{ending}.md"
        if not os.path.lexists(path) or _is_own(path, session):
            return path
        if number > MAX_NAMES:
            break
    raise Refused(f"{folder} holds too many plans of one name", way_out="remove some of them")


def _is_own(path: Path, session: Session) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return f"**Session:** {session.session_id}\n" in itertools.islice(file, 10)
