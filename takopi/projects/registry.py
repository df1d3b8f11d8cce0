"""Finds a project by the alias that a person wrote, and its folder where that can be used."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import trio

from takopi.config.loaded import Config, Project
from takopi.core.errors import Refused


def find_project(config: Config, alias: str) -> Project:
    """The project that goes by this alias, in any case; refused with the nearest one there is."""
    if project := config.project(alias):
        return project
    known = {name.lower(): name for name in config.projects}
    near = difflib.get_close_matches(alias.lower(), known, n=1)
    if near:
        way_out = f"did you mean {known[near[0]]}?"
    elif known:
        way_out = f"there are {', '.join(config.projects)}; `takopi init` in a folder adds it"
    else:
        way_out = "run `takopi init` in its folder"
    raise Refused(f"there is no project {alias}", way_out=way_out)


async def find_root(project: Project) -> Path:
    """The project's folder with all symlinks resolved; refused if it is not a folder."""
    return await trio.to_thread.run_sync(_find_root, project)


def _find_root(project: Project) -> Path:
    # Not Path.resolve: that raises on a loop of symlinks.
    root = Path(os.path.realpath(project.path))
    if root.is_dir():
        return root
    fault = "is not a folder" if os.path.lexists(root) else "is not there"
    raise Refused(
        f"the folder of {project.alias} {fault}: {project.path}",
        way_out=f"mend its path in the config, or run `takopi init {project.alias}` where it is",
    )
