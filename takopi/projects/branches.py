"""Decides what a new branch starts from."""

from __future__ import annotations

from pathlib import Path

from takopi.core.errors import Refused
from takopi.projects.git import git

_ORIGIN = "refs/remotes/origin/"


async def has_ref(root: Path, ref: str) -> bool:
    """Whether a full ref name exists and is not dangling."""
    return (await git(root, "show-ref", "--verify", "--quiet", ref)).ok


async def find_base(root: Path, configured: str | None) -> str:
    """The base of new branches: the configured one, else the first of what the repository offers.

    That is the default branch of origin, the branch checked out at `root`, `main`, `master`. A
    branch that only origin has is named `origin/<name>`, because git would not find it otherwise.
    """
    if configured is not None:
        return await _find_configured(root, configured)
    head = await git(root, "symbolic-ref", "-q", f"{_ORIGIN}HEAD")
    if head.ok and (found := await _local_or_origin(root, head.out.removeprefix(_ORIGIN))):
        return found
    current = (await git(root, "branch", "--show-current")).checked()
    for name in (current, "main", "master"):
        # The current branch of a repository without a commit is not there yet.
        if name and await has_ref(root, f"refs/heads/{name}"):
            return name
    raise Refused(
        "cannot determine base branch",
        way_out="set worktree_base in the project's table to the branch that new ones start from",
    )


async def _find_configured(root: Path, base: str) -> str:
    if found := await _local_or_origin(root, base):
        return found
    # A tag, a commit, or another remote's branch.
    commit = await git(
        root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}"
    )
    if commit.ok:
        return base
    raise Refused(
        f"the base branch {base} does not exist",
        way_out="mend worktree_base in the project's table, or fetch the branch",
    )


async def _local_or_origin(root: Path, name: str) -> str | None:
    if await has_ref(root, f"refs/heads/{name}"):
        return name
    if await has_ref(root, f"{_ORIGIN}{name}"):
        return f"origin/{name}"
    return None
