"""Real git repositories for the tests, untouched by the settings of whoever runs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import trio

from takopi.config.loaded import Project
from takopi.projects.worktrees import Worktrees

ENVIRON = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def run_git(folder: Path, *args: str) -> str:
    """Run git and give what it said; raise if it failed."""
    done = subprocess.run(
        ["git", "-C", str(folder), *args],
        env=ENVIRON,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


def make_repo(folder: Path, *, branch: str = "main", commit: bool = True) -> Path:
    """A repository with one commit, unless told otherwise."""
    folder.mkdir(parents=True)
    run_git(folder, "init", "--quiet", "--initial-branch", branch)
    if commit:
        run_git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder.resolve()


def clone(origin: Path, folder: Path) -> Path:
    """A clone, with origin/HEAD as git sets it."""
    run_git(origin, "clone", "--quiet", str(origin), str(folder))
    return folder.resolve()


def project_at(
    repo: Path, worktrees_dir: str = ".worktrees", *, base: str | None = None
) -> Project:
    """The repository as a project called z80."""
    return Project("z80", repo, repo / worktrees_dir, worktree_base=base)


def branches(repo: Path) -> list[str]:
    """The local branches, sorted."""
    return run_git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


def head_of(folder: Path) -> str:
    """The branch that is checked out."""
    return run_git(folder, "branch", "--show-current")


async def prepare(project: Project, branch: str | None = None) -> Path:
    """Have the folder of a branch made, in good time."""
    with trio.fail_after(120):
        return await Worktrees().prepare(project, branch)


def write(path: Path, text: str) -> None:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def commit_file(folder: Path, name: str, text: str) -> str:
    """Commit a file, and say which commit that is."""
    write(folder / name, text)
    run_git(folder, "add", "--", name)
    run_git(folder, "commit", "--quiet", "--message", name)
    return run_git(folder, "rev-parse", "HEAD")


def add_hook(repo: Path, name: str, script: str) -> None:
    """A hook in the language of sh."""
    hook = repo / ".git/hooks" / name
    write(hook, f"#!/bin/sh\n{script}\n")
    hook.chmod(0o700)
