"""One worktree per branch, below the project's worktrees folder: whole, or not there at all."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio

from takopi.config.loaded import Project
from takopi.core.errors import Refused, Unfit
from takopi.projects import review
from takopi.projects.branches import find_base, has_ref
from takopi.projects.checkout import exclude, find_checkout
from takopi.projects.git import GitResult, git, git_deadline
from takopi.projects.names import check_branch
from takopi.projects.places import (
    find_home,
    find_place,
    missing_above,
    remove_empty,
    remove_half_made,
)
from takopi.projects.registry import find_root
from takopi.projects.repository import (
    Repository,
    checked_out_branch,
    find_repository,
    find_trees,
    is_worktree,
    resolved,
)

GIT_S = 120.0
"""How long git may take for one request: a checkout of a large repository is not quick."""

CLEAN_UP_S = 20.0
"""How long a failed creation may take to be undone."""


class Worktrees:
    """The worktrees of all projects. One request at a time changes a repository."""

    def __init__(self, *, git_s: float = GIT_S) -> None:
        self._git_s = git_s
        self._locks: dict[Path, trio.Lock] = {}

    async def prepare(self, project: Project, branch: str | None = None) -> Path:
        """The folder to work in: the project's own, or the branch's worktree, made if need be.

        It comes without symlinks. What cannot be had is `Refused`, and nothing of it stays.
        """
        if branch is None:
            return await find_root(project)
        async with self._open(project, branch) as repository:
            there = await _find_tree(project, repository, branch)
            if there is not None:
                return there
            home, place = await _find_place(project, repository, branch)
            await _create(place, repository, project, home=home, branch=branch)
            return place

    async def find(self, project: Project, branch: str) -> Path | None:
        """The folder that work on the branch goes on in; None if it would have to be made."""
        async with self._open(project, branch) as repository:
            return await _find_tree(project, repository, branch)

    async def archive(self, project: Project, branch: str, *, force: bool = False) -> None:
        """Remove the worktree of a branch; the branch stays, and so does the project's own folder.

        What would be lost with it is refused unless `force` is set.
        """
        async with self._open(project, branch) as repository:
            home, place = await _find_place(project, repository, branch)
            if repository.root.is_relative_to(place):
                raise Refused(f"{place} is the folder of {project.alias} itself")
            if await _is_there(place):
                await _check_worktree(place, repository, project)
                if not force:
                    await _check_nothing_is_lost(place, branch)
            elif place not in {tree.path for tree in await find_trees(repository)}:
                raise Refused(f"{project.alias} has no worktree for @{branch}")
            forced = ("--force",) if force else ()
            (await git(repository.root, "worktree", "remove", *forced, str(place))).checked()
            above = place.parents[: len(place.parent.relative_to(home).parts)]
            await trio.to_thread.run_sync(remove_empty, *above)

    async def list(self, project: Project) -> tuple[review.WorktreeInfo, ...]:
        """All worktrees below the project's worktrees folder, in the order of their names."""
        with git_deadline(self._git_s):
            repository = await find_repository(await find_root(project))
            home = await trio.to_thread.run_sync(find_home, project, repository)
            return await review.look_at_all(repository, home, base=project.worktree_base)

    async def diff(self, path: Path, *, limit_bytes: int, base: str | None = None) -> str:
        """What was changed in a folder: a summary, then the patch, with files git knows not yet.

        That is since the last commit, or since the branch left `base`. Empty, if nothing was.
        """
        with git_deadline(self._git_s):
            return await review.diff(path, limit_bytes=limit_bytes, base=base)

    async def find_base(self, project: Project) -> str:
        """What new branches of the project start from."""
        with git_deadline(self._git_s):
            return await find_base(await find_root(project), project.worktree_base)

    @asynccontextmanager
    async def _open(self, project: Project, branch: str) -> AsyncGenerator[Repository]:
        """The project's repository, to oneself and under a deadline, for a name that is one."""
        check_branch(branch)
        root = await find_root(project)
        with git_deadline(self._git_s):
            repository = await find_repository(root)
        async with self._locks.setdefault(repository.common_dir, trio.Lock()):
            with git_deadline(self._git_s):
                yield repository


async def _find_tree(project: Project, repository: Repository, branch: str) -> Path | None:
    if await checked_out_branch(repository) == branch:
        return repository.root
    _, place = await _find_place(project, repository, branch)
    if not await _is_there(place):
        return None
    await _check_worktree(place, repository, project)
    return place


async def _find_place(project: Project, repository: Repository, branch: str) -> tuple[Path, Path]:
    home = await trio.to_thread.run_sync(find_home, project, repository)
    return home, await trio.to_thread.run_sync(find_place, home, branch)


async def _is_there(place: Path) -> bool:
    return await trio.to_thread.run_sync(os.path.lexists, place)


async def _check_worktree(place: Path, repository: Repository, project: Project) -> None:
    if await resolved(place) != place or not await is_worktree(repository, place):
        raise Refused(
            f"{place} is there, but is not a worktree of {project.alias}",
            way_out="move it away, or name another branch",
        )


async def _check_nothing_is_lost(place: Path, branch: str) -> None:
    if (await git(place, "status", "--porcelain")).checked():
        raise Refused(
            f"the worktree of @{branch} has changes that are not committed",
            way_out="commit them, or confirm that they may go",
        )
    attached = await git(place, "symbolic-ref", "--quiet", "HEAD")
    kept = await git(place, "for-each-ref", "--count=1", "--contains=HEAD")
    if not attached.ok and not kept.checked():
        raise Refused(
            f"the worktree of @{branch} has commits that are on no branch",
            way_out="give them a branch, or confirm that they may go",
        )


async def _create(
    place: Path, repository: Repository, project: Project, *, home: Path, branch: str
) -> None:
    root = repository.root
    await _hide(home, repository)
    if place in {tree.path for tree in await find_trees(repository)}:
        # Its folder is gone, and git would not make it again while it is registered.
        (await git(root, "worktree", "remove", str(place))).checked()
    add = ["worktree", "add", "--quiet"]
    start: str | None = None
    if await has_ref(root, f"refs/heads/{branch}"):
        add += [str(place), branch]
    elif await has_ref(root, f"refs/remotes/origin/{branch}"):
        start = f"refs/remotes/origin/{branch}"
        add += ["-b", branch, str(place), start]
    else:
        start = await find_base(root, project.worktree_base)
        if await has_ref(root, f"refs/heads/{start}"):
            # A tag of the same name would come first.
            start = f"refs/heads/{start}"
        add += ["--no-track", "-b", branch, str(place), start]
    commit = start and (await git(root, "rev-parse", f"{start}^{{commit}}")).checked()
    made = await trio.to_thread.run_sync(missing_above, place)
    added: GitResult | None = None
    try:
        added = await git(root, *add)
        added.checked()
        await _check_worktree(place, repository, project)
    except BaseException:
        with trio.move_on_after(CLEAN_UP_S, shield=True):
            # Somebody else was quicker: what is there now is theirs.
            if added is None or f"'{place}' already exists" not in added.words:
                await _remove_tree(place, repository, made=made)
            if commit is not None:
                await _remove_branch(branch, repository, commit=commit)
        raise


async def _hide(home: Path, repository: Repository) -> None:
    checkout = None if repository.bare else await find_checkout(repository.root)
    if checkout is not None:
        # Where this cannot be written, git will say why soon enough.
        with suppress(OSError):
            await exclude(checkout, home)


async def _remove_tree(place: Path, repository: Repository, *, made: tuple[Path, ...]) -> None:
    # The error that led here is the one to be told.
    with suppress(Unfit):
        # Twice, because a worktree that is not finished is locked.
        await git(repository.root, "worktree", "remove", "--force", "--force", str(place))
    await trio.to_thread.run_sync(lambda: remove_half_made(place, repository, made=made))


async def _remove_branch(branch: str, repository: Repository, *, commit: str) -> None:
    """Remove a branch that was new and began at `commit`; if it has moved on, it is somebody's."""
    with suppress(Unfit):
        tip = await git(repository.root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        if tip.ok and tip.out == commit:
            await git(repository.root, "branch", "--delete", "--force", "--quiet", branch)
