"""Where the present run works, and how its paths read from there."""

from __future__ import annotations

import re
from contextvars import ContextVar
from pathlib import Path

run_cwd: ContextVar[Path | None] = ContextVar("run_cwd", default=None)
"""The folder of the run that the present task belongs to."""

# What may stand before and after a path that is a word of its own.
_BEFORE = r"""(?<![^\s"'`=:(,;|&<>])"""
_AFTER = r"""(?=$|[\s"'`:),;|&<>])"""


def relativize_path(path: str, base_dir: Path | None = None) -> str:
    """`path` as seen from `base_dir`, or else from the run's folder; as it was, if not below it."""
    base = _base(base_dir)
    if not base or not path.startswith(base):
        return path
    rest = path[len(base) :]
    if not rest.strip("/"):
        return "."
    return rest.lstrip("/") if rest.startswith("/") else path


def relativize_command(command: str, base_dir: Path | None = None) -> str:
    """`command` with every path below `base_dir`, or else the run's folder, as seen from there."""
    base = _base(base_dir)
    if not base or base not in command:
        return command
    literal = re.escape(base)
    command = re.sub(rf"{_BEFORE}{literal}/?{_AFTER}", ".", command)
    # What begins with these would no longer be a path: it keeps its dot.
    command = re.sub(rf"{_BEFORE}{literal}/(?=[-~])", "./", command)
    return re.sub(rf"{_BEFORE}{literal}/(?=[^/])", "", command)


def _base(base_dir: Path | None) -> str:
    """The folder without a slash at its end; empty, if there is none, or if it is the root."""
    base = base_dir or run_cwd.get()
    return "" if base is None else str(base).rstrip("/")
