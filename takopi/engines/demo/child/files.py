"""Changes files in the current folder, and nothing outside it: by no path and through no link."""

from __future__ import annotations

import errno
import os
import stat

from takopi.engines.demo.child.wire import write_all

NAME_MAX_BYTES = 255
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK


class NotAllowed(Exception):
    """The path leads, or may lead, out of the folder."""


def change_file(path: str, text: str, *, append: bool) -> None:
    """Write or append to a file below the current folder, making the folders on the way.

    Every part of the path is opened by itself and never through a link, so that what is checked
    is what is used.
    """
    *folders, name = _parts(path)
    here = os.open(".", _FOLDER)
    try:
        for part in folders:
            below = _enter(part, here)
            os.close(here)
            here = below
        fd = _open(name, _FILE | (os.O_APPEND if append else 0), here)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise NotAllowed("it is not a file")
            if not append:
                os.ftruncate(fd, 0)
            write_all(fd, text.encode("utf-8", "replace"))
        finally:
            os.close(fd)
    finally:
        os.close(here)


def _parts(path: str) -> list[bytes]:
    parts = path.encode("utf-8", "replace").split(b"/")
    if parts[0] == b"":
        raise NotAllowed("it is outside the folder")
    parts = [part for part in parts if part not in {b"", b"."}]
    if b".." in parts:
        raise NotAllowed("it is outside the folder")
    if not parts or path.endswith("/"):
        raise NotAllowed("it is a folder")
    if b".git" in {part.lower() for part in parts}:
        raise NotAllowed("it belongs to git")
    if any(len(part) > NAME_MAX_BYTES or b"\0" in part for part in parts):
        raise NotAllowed("it is no name for a file")
    return parts


def _enter(part: bytes, here: int) -> int:
    if not _exists(part, here):
        os.mkdir(part, 0o755, dir_fd=here)
    return _open(part, _FOLDER, here)


def _open(name: bytes, flags: int, here: int) -> int:
    try:
        return os.open(name, flags, 0o644, dir_fd=here)
    except OSError as error:
        # O_NOFOLLOW: a link gives ELOOP, or ENOTDIR where a folder was asked for.
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(name, here)):
            raise NotAllowed("it is a link") from error
        raise


def _is_link(name: bytes, here: int) -> bool:
    return stat.S_ISLNK(os.lstat(name, dir_fd=here).st_mode)


def _exists(name: bytes, here: int) -> bool:
    try:
        os.lstat(name, dir_fd=here)
    except FileNotFoundError:
        return False
    return True
