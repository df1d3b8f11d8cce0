"""Where the worktree of a branch lies: below the worktrees folder, whatever is a symlink there."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from takopi.config.loaded import Project
from takopi.core.errors import Refused
from takopi.projects.repository import Repository


def find_home(project: Project, repository: Repository) -> Path:
    """The folder of the project's worktrees, with all symlinks resolved.

    One that is configured inside the project must not lead out of it: a repository can bring a
    symlink of that name along. Elsewhere is only where the config says so itself.
    """
    home = Path(os.path.realpath(project.worktrees_dir))
    configured = Path(os.path.normpath(project.worktrees_dir))
    inside = configured.is_relative_to(os.path.normpath(project.path))
    if inside and not home.is_relative_to(repository.root):
        raise Refused(
            f"{project.worktrees_dir} leads out of {project.alias}, to {home}",
            way_out="remove that symlink, or set worktrees_dir to where it leads",
        )
    if home.is_relative_to(repository.common_dir):
        raise Refused(
            f"{project.worktrees_dir} lies inside git's own folder",
            way_out=f"set worktrees_dir of {project.alias} to another folder",
        )
    return home


def find_place(home: Path, branch: str) -> Path:
    """The folder of a branch that was checked: exactly there, with no symlink on the way."""
    place = home / branch
    real = Path(os.path.realpath(place))
    if real != place:
        raise Refused(
            f"{place} is not a folder of its own, but leads to {real}",
            way_out="remove that symlink, or name another branch",
        )
    for above in place.parents:
        if above == home:
            break
        if os.path.lexists(above / ".git"):
            raise Refused(
                f"{place} would lie inside the worktree {above}",
                way_out="name another branch, or archive that worktree first",
            )
    return place


def missing_above(place: Path) -> tuple[Path, ...]:
    """The folders above `place` that are not there, the lowest first."""
    found: list[Path] = []
    for above in place.parents:
        if above.exists():
            break
        found.append(above)
    return tuple(found)


def remove_half_made(place: Path, repository: Repository, *, made: tuple[Path, ...]) -> None:
    """Remove what a git that was killed left at `place`, and those of `made` that are empty.

    A folder that git has not marked as this repository's worktree is somebody else's, and stays.
    """
    with suppress(OSError):
        mark = (place / ".git").read_text(encoding="utf-8", errors="surrogateescape")
        if mark.startswith(f"gitdir: {repository.common_dir}{os.sep}worktrees{os.sep}"):
            shutil.rmtree(place)
    remove_empty(place, *made)


def remove_empty(*folders: Path) -> None:
    """Remove the folders as far as they are there and empty, and stop at the first that is not."""
    with suppress(OSError):
        for folder in folders:
            with suppress(FileNotFoundError):
                folder.rmdir()
