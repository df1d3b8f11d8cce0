"""Real git repositories for the tests, untouched by the settings of whoever runs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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
