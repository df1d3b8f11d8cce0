"""Says what a folder is to git: a main checkout, a linked worktree, a folder below, or nothing."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import trio

from takopi.projects.git import git
from takopi.projects.repository import resolved


@dataclass(frozen=True, slots=True)
class Checkout:
    """The working tree that a folder lies in.

    `main` is the checkout that a linked worktree belongs to: itself if it is not a linked one,
    None if the repository is bare.
    """

    top: Path
    main: Path | None
    exclude_file: Path

    @property
    def linked(self) -> bool:
        """Whether this is a worktree beside the main checkout."""
        return self.main != self.top


async def find_checkout(folder: Path) -> Checkout | None:
    """The working tree around `folder`; None if it is in no repository.

    A repository that git refuses to look at raises, with git's own words.
    """
    top = await git(folder, "rev-parse", "--show-toplevel")
    if not top.ok and "not a git repository" in top.words:
        return None
    root = Path(top.checked())
    git_dir = await _path(folder, "--git-dir")
    common_dir = await _path(folder, "--git-common-dir")
    main: Path | None = root
    if git_dir != common_dir:
        listed = (await git(folder, "worktree", "list", "--porcelain")).checked()
        first = listed.split("\n\n", 1)[0].splitlines()
        main = None if "bare" in first else Path(first[0].removeprefix("worktree "))
    return Checkout(root, main, await _path(folder, "--git-path", "info/exclude"))


async def _path(folder: Path, *args: str) -> Path:
    said = (await git(folder, "rev-parse", *args)).checked()
    return await resolved(folder / said)


async def exclude(checkout: Checkout, folder: Path) -> bool:
    """Keep git from seeing a folder, for this clone alone; False if there was nothing to do.

    Nothing is written if the folder lies outside the repository or is ignored already.
    """
    top, inside = await resolved(checkout.top), await resolved(folder)
    if inside == top or not inside.is_relative_to(top):
        return False
    # A name below it: a pattern for folders does not match a folder that is not there yet.
    probe = await git(top, "check-ignore", "--quiet", "--no-index", str(inside / "x"))
    if probe.ok:
        return False
    escaped = re.sub(r"([\\*?\[\]])", r"\\\1", inside.relative_to(top).as_posix())
    line = os.fsencode(f"/{escaped}/\n")
    await trio.to_thread.run_sync(_append_line, checkout.exclude_file, line)
    return True


def _append_line(path: Path, line: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(0)
        before = file.read()
        file.write(line if not before or before.endswith(b"\n") else b"\n" + line)
