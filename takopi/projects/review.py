"""What has become of a project's worktrees: their state in figures, their changes as a patch."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from takopi.core.errors import Refused, TakopiError
from takopi.projects.branches import find_base
from takopi.projects.git import git, git_head
from takopi.projects.repository import Repository, Tree, find_trees

AT_ONCE = 4
"""How many worktrees are looked at at the same time."""

DISK_S = 5.0
"""How long the disk is walked for one worktree before its size stays unknown."""


@dataclass(frozen=True, slots=True)
class WorktreeInfo:
    """A worktree in figures; None where one is not known.

    `branch` is the name that leads to it, `checked_out` what is checked out there now. `ahead` and
    `behind` count commits against the base of new branches.
    """

    branch: str
    path: Path
    checked_out: str | None
    ahead: int | None
    behind: int | None
    dirty: bool | None
    disk_bytes: int | None


async def look_at_all(
    repository: Repository, home: Path, *, base: str | None
) -> tuple[WorktreeInfo, ...]:
    """The worktrees below `home` whose folders are there, in the order of their names."""
    trees = [tree for tree in await find_trees(repository) if tree.path.is_relative_to(home)]
    found: list[WorktreeInfo] = []
    limiter = trio.CapacityLimiter(AT_ONCE)
    try:
        compared_to = await find_base(repository.root, base)
    except Refused:
        compared_to = None

    async def look(tree: Tree) -> None:
        async with limiter:
            if await trio.Path(tree.path).is_dir():
                found.append(await _look_at(tree, home, base=compared_to))

    async with trio.open_nursery() as nursery:
        for tree in trees:
            if tree.path not in {home, repository.root}:
                nursery.start_soon(look, tree)
    return tuple(sorted(found, key=lambda info: info.branch))


async def _look_at(tree: Tree, home: Path, *, base: str | None) -> WorktreeInfo:
    ahead = behind = dirty = disk_bytes = None
    # One broken worktree must not hide the others.
    with suppress(TakopiError):
        dirty = bool((await git(tree.path, "status", "--porcelain")).checked())
        if base is not None:
            counted = await git(
                tree.path, "rev-list", "--left-right", "--count", f"{base}...HEAD", "--"
            )
            behind, ahead = map(int, counted.checked().split())
    with trio.move_on_after(DISK_S):
        disk_bytes = await trio.to_thread.run_sync(_disk_bytes, tree.path)
    return WorktreeInfo(
        branch=tree.path.relative_to(home).as_posix(),
        path=tree.path,
        checked_out=tree.branch,
        ahead=ahead,
        behind=behind,
        dirty=dirty,
        disk_bytes=disk_bytes,
    )


def _disk_bytes(folder: Path) -> int:
    total = 0
    folders = [os.fspath(folder)]
    while folders:
        trio.from_thread.check_cancelled()
        # Files come and go while an engine works.
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return total


async def diff(path: Path, *, limit_bytes: int, base: str | None = None) -> str:
    """A summary and the patch since the last commit, or since HEAD left `base`; empty if the same.

    Cut at a line where it is longer than `limit_bytes`, and says so.
    """
    index = (await git(path, "rev-parse", "--git-path", "index")).checked()
    since = await _since(path, base)
    with TemporaryDirectory(prefix="takopi-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, "index")
        # In a copy of the index new files can be announced to git, and nobody notices.
        with suppress(FileNotFoundError):
            await trio.to_thread.run_sync(_copy, path / index, copy)
        env = {"GIT_INDEX_FILE": str(copy)}
        # What cannot be announced, as a repository inside this one, is left out.
        await git(path, "add", "--intent-to-add", "--ignore-errors", "--", ":/", env=env)
        said, whole = await git_head(
            path,
            *("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat=60", "--patch"),
            *(since, "--"),
            max_bytes=limit_bytes,
            env=env,
        )
    if whole:
        return said.decode("utf-8", "replace")
    kept = said[: said.rfind(b"\n") + 1].decode("utf-8", "replace")
    return f"{kept}… and more: cut after {limit_bytes} bytes\n"


def _copy(index: Path, copy: Path) -> None:
    """Copy an index with its time: git compares what was changed after that, however alike."""
    with index.open("rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target)
        found = os.fstat(source.fileno())
    os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))


async def _since(path: Path, base: str | None) -> str:
    head = await git(path, "rev-parse", "--verify", "--quiet", "HEAD")
    if not head.ok:
        # No commit yet: everything is new. stdin is empty, and so is the tree of it.
        return (await git(path, "hash-object", "-t", "tree", "--stdin")).checked()
    if base is None:
        return head.out
    fork = await git(path, "merge-base", "--", base, "HEAD")
    return fork.out if fork.ok else head.out
