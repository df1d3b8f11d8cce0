"""Says whether a path of a plan may be touched: inside the project, and nobody's own business."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from takopi.turns.layout import FOLDER

CLOSED = (".git", FOLDER)
_MAX_CHARS = 1024
_MAX_NAME_BYTES = 255
"""The longest name of a file, on every file system that matters."""


def path_fault(root: Path, path: str) -> str | None:
    """Why a path may not be used, None if it may; symlinks count as what they point to."""
    if normal(path) == ".":
        return "names no file"
    if any(not char.isprintable() for char in path) or len(path) > _MAX_CHARS:
        return "is no path"
    pure = PurePosixPath(path)
    if any(len(part.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES for part in pure.parts):
        return "has a name that is too long"
    if pure.is_absolute() or path.startswith("~"):
        return "is absolute; plans use paths from the project's root"
    if ".." in pure.parts:
        return "leaves the project"
    base = root.resolve()
    try:
        real = (base / pure).resolve()
    except (OSError, RuntimeError):
        return "cannot be resolved"
    if not real.is_relative_to(base):
        return "leaves the project through a symlink"
    for parts in (pure.parts, real.relative_to(base).parts):
        # On some file systems `.GIT` is the same folder.
        if closed := next((one for one in CLOSED if one in {part.lower() for part in parts}), None):
            return f"lies in {closed}/, which plans must not touch"
    return None


def normal(path: str) -> str:
    """A path without `./` and doubled slashes, so that two spellings are one."""
    return str(PurePosixPath(path))
