"""Where the demo engine works: its folder, and the branch that git's own files name."""

from __future__ import annotations

import os

MAX_HEAD_BYTES = 4096


def folder_name() -> str:
    """The name of the current folder."""
    return _here().rpartition("/")[2] or "/"


def branch_name() -> str:
    """The branch of the current folder; empty outside of a repository or without a branch."""
    folder = _here()
    while True:
        git = f"{folder}/.git"
        pointer = _read(git)
        if pointer.startswith("gitdir: "):
            target = pointer.removeprefix("gitdir: ")
            git = target if target.startswith("/") else f"{folder}/{target}"
        if head := _read(f"{git}/HEAD"):
            return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else ""
        if not folder:
            return ""
        folder = folder.rpartition("/")[0]


def _here() -> str:
    # ruff: ignore[os-getcwd] pathlib is too heavy for us
    return os.getcwdb().decode("utf-8", "replace").rstrip("/")


def _read(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(fd, MAX_HEAD_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(fd)
