"""What git says about a repository and its worktrees, as data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import trio

from takopi.core.errors import Refused
from takopi.projects.git import git


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository around a project's folder. `common_dir` is the same for all its worktrees."""

    root: Path
    common_dir: Path
    bare: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """A worktree as git has it registered; its folder may be gone."""

    path: Path
    branch: str | None


async def find_repository(root: Path) -> Repository:
    """The repository that `root` lies in; refused if it lies in none."""
    said = await git(root, "rev-parse", "--is-inside-work-tree", "--git-common-dir")
    if not said.ok and "not a git repository" in said.words:
        raise Refused(
            f"{root} is not a git repository, so it has no branches",
            way_out="leave the branch out, or run `git init` there",
        )
    inside, _, common_dir = said.checked().partition("\n")
    return Repository(root, await resolved(root / common_dir), bare=inside != "true")


async def checked_out_branch(repository: Repository) -> str | None:
    """The branch that is checked out at the root; None if there is none."""
    if repository.bare:
        return None
    return (await git(repository.root, "branch", "--show-current")).checked() or None


async def find_trees(repository: Repository) -> tuple[Tree, ...]:
    """All worktrees of the repository, the main one included, with their paths resolved."""
    listed = (await git(repository.root, "worktree", "list", "--porcelain")).checked()
    found: list[Tree] = []
    for block in listed.split("\n\n"):
        lines = block.splitlines()
        named = next((line for line in lines if line.startswith("worktree ")), None)
        if named is None:
            continue
        branch = next((line for line in lines if line.startswith("branch ")), None)
        found.append(
            Tree(
                path=await resolved(Path(named.removeprefix("worktree "))),
                branch=branch.removeprefix("branch refs/heads/") if branch else None,
            )
        )
    return tuple(found)


async def is_worktree(repository: Repository, path: Path) -> bool:
    """Whether `path` is the top level of a worktree of this repository.

    That something is inside a work tree says nothing: any folder below the root is.
    """
    if not await trio.Path(path).is_dir():
        return False
    said = await git(path, "rev-parse", "--show-toplevel", "--git-common-dir")
    if not said.ok and "not a git repository" in said.words:
        return False
    top, _, common_dir = said.checked().partition("\n")
    return (
        await resolved(Path(top)) == path
        and await resolved(path / common_dir) == repository.common_dir
    )


async def resolved(path: Path) -> Path:
    """`path` without symlinks, as far as it exists; a loop of them stays as it is."""
    return Path(await trio.to_thread.run_sync(os.path.realpath, path))
