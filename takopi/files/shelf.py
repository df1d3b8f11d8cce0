"""Writes and reads files below one folder: no path and no symlink leads out, also in a race.

Every part of a path is opened by itself, relative to the one before it and never through a link,
so that what was checked is what is used. These calls block.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from takopi.core.errors import Refused
from takopi.files.deny import is_denied
from takopi.files.names import numbered, safe_name
from takopi.kit.pieces import PIECE_BYTES

MAX_IN_BYTES = 20 * 1024 * 1024
MAX_OUT_BYTES = 50 * 1024 * 1024
MOST_NUMBERS = 10_000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: somebody may have put a pipe there.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder, the folder in it that files come into, and the patterns that are denied.

    `private` are files and folders that are takopi's own: they are closed by whatever name.
    """

    root: Path
    uploads_dir: str
    deny: tuple[str, ...]
    private: tuple[Path, ...] = ()

    def save(
        self, name: str, content: BinaryIO, *, force: bool = False, keep: Collection[str] = ()
    ) -> str:
        """Keep the content of a file, all of it, and return its path from the root on.

        A name that is taken gets a number, unless the file there has this content already, or
        `force` lets it be replaced. The paths in `keep` are never replaced. The file is there
        whole, or not at all.
        """
        check_size(name, content.seek(0, os.SEEK_END))
        check_name(name, self.uploads_dir, deny=self.deny)
        folders = PurePosixPath(self.uploads_dir).parts
        wanted = safe_name(name)
        # On some disks names that differ in case alone are one.
        kept = {path.casefold() for path in keep}
        replaces = force and "/".join((*folders, wanted)).casefold() not in kept
        with self._entered(folders, make=True) as folder:
            if replaces:
                self._check_replaceable(folder, wanted)
            return "/".join((*folders, _put(folder, wanted, content, force=replaces)))

    def read(self, path: str, write: Callable[[bytes], object]) -> str:
        """Hand the content of a file below the root to `write`, in pieces; returns its name.

        Symlinks are followed as long as they stay inside.
        """
        *folders, name = parts = self._resolved(path)
        shown = "/".join(parts)
        with self._entered(folders, make=False) as folder:
            try:
                fd = os.open(name, _READ, dir_fd=folder)
            except OSError as error:
                raise _refusal(error, shown) from error
            try:
                status = os.fstat(fd)
                self._check_open(status, shown)
                size = status.st_size
                if size <= MAX_OUT_BYTES:
                    # It may grow while it is read.
                    size = _copy(fd, write, most=MAX_OUT_BYTES)
            finally:
                os.close(fd)
        if size > MAX_OUT_BYTES:
            raise Refused(
                f"{shown} is over {MAX_OUT_BYTES // (1024 * 1024)} MB, which is the most",
                way_out="let an agent make it smaller",
            )
        if not size:
            raise Refused(f"{shown} is empty", way_out="there is nothing to send")
        return name

    def _resolved(self, path: str) -> tuple[str, ...]:
        """The parts of the path that is meant, without any symlink, or why it cannot be had."""
        if not path.strip() or "\0" in path:
            raise Refused("that is not a path", way_out="name a file of the project")
        root = Path(os.path.realpath(self.root))
        try:
            # The root as it is named, too: an agent may have written the whole path.
            named = root / path
            real = Path(os.path.realpath(named))
            inside = real.relative_to(root).parts
        except (OSError, ValueError):
            raise Refused(
                f"{path} is outside of the folder that is worked in",
                way_out="name a file below it",
            ) from None
        if not inside:
            raise Refused(f"{path} is a folder", way_out="name a file in it")
        lexical = Path(os.path.normpath(named))
        written = lexical.relative_to(root).parts if lexical.is_relative_to(root) else ()
        if is_denied(inside, self.deny) or is_denied(written, self.deny):
            raise Refused(
                f"{path} is on the list of `files.deny`",
                way_out="take it off that list if it may be read",
            )
        return inside

    @contextmanager
    def _entered(self, folders: Sequence[str], *, make: bool) -> Generator[int, None, None]:
        try:
            here = os.open(os.path.realpath(self.root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(
                f"the folder that is worked in cannot be opened: {self.root}: {error.strerror}",
                way_out="make it again, or choose another project",
            ) from error
        try:
            self._check_not_private(os.fstat(here), str(self.root))
            for number, part in enumerate(folders, 1):
                try:
                    if make:
                        with suppress(FileExistsError):
                            os.mkdir(part, 0o755, dir_fd=here)
                    below = os.open(part, _FOLDER, dir_fd=here)
                except OSError as error:
                    raise _refusal(error, "/".join(folders[:number])) from error
                os.close(here)
                here = below
                self._check_not_private(os.fstat(here), "/".join(folders[:number]))
            yield here
        finally:
            os.close(here)

    def _check_replaceable(self, folder: int, name: str) -> None:
        """Nothing, or a plain file, is there: a rename would replace a link as well."""
        try:
            status = os.lstat(name, dir_fd=folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _refusal(error, name) from error
        self._check_open(status, name)

    def _check_open(self, status: os.stat_result, shown: str) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise Refused(f"{shown} is a folder", way_out="name a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{shown} is not a plain file", way_out="name another file")
        self._check_not_private(status, shown)

    def _check_not_private(self, status: os.stat_result, shown: str) -> None:
        """What is opened is compared, not its path: one file may have many."""
        for path in self.private:
            with suppress(OSError):
                if os.path.samestat(path.stat(), status):
                    raise Refused(
                        f"{shown} is takopi's own, and stays on this machine",
                        way_out="name another file",
                    )


def check_size(name: str, size_bytes: int) -> None:
    """Refuse a file that is too big to be taken."""
    if size_bytes > MAX_IN_BYTES:
        raise Refused(
            f"{safe_name(name)} is over {MAX_IN_BYTES // (1024 * 1024)} MB, which is the most",
            way_out="send a smaller one",
        )


def check_name(name: str, uploads_dir: str, *, deny: Collection[str]) -> None:
    """Refuse a file that may not be written under its name."""
    wanted = safe_name(name)
    if is_denied((*PurePosixPath(uploads_dir).parts, wanted), deny):
        raise Refused(f"{wanted} is on the list of `files.deny`", way_out="give it another name")


def _put(folder: int, wanted: str, content: BinaryIO, *, force: bool) -> str:
    """Write the file under no name that anybody looks for, and give it its own once it is whole."""
    temporary = f".{secrets.token_hex(8)}.part"
    try:
        _write_new(folder, temporary, content)
        if force:
            name = wanted
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            name = _link(folder, temporary, wanted, content=content)
        os.fsync(folder)
    except OSError as error:
        raise _refusal(error, wanted) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
    return name


def _link(folder: int, temporary: str, wanted: str, *, content: BinaryIO) -> str:
    """Give the file a name that is free; where one of this content is there already, that is it."""
    for name in islice(numbered(wanted), MOST_NUMBERS):
        try:
            # A link, unlike a rename, never takes the place of anything.
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            if not _has(folder, name, content):
                continue
        return name
    raise Refused(f"there are too many files named {wanted}", way_out="give it another name")


def _has(folder: int, name: str, content: BinaryIO) -> bool:
    try:
        fd = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        size = content.seek(0, os.SEEK_END)
        if not stat.S_ISREG(status.st_mode) or status.st_size != size:
            return False
        content.seek(0)
        while piece := content.read(PIECE_BYTES):
            if _read_full(fd, len(piece)) != piece:
                return False
        return not os.read(fd, 1)
    finally:
        os.close(fd)


def _write_new(folder: int, name: str, content: BinaryIO) -> None:
    fd = os.open(name, _NEW, 0o644, dir_fd=folder)
    try:
        content.seek(0)
        while piece := content.read(PIECE_BYTES):
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def _copy(fd: int, write: Callable[[bytes], object], *, most: int) -> int:
    """Hand all of a file to `write`, or the first that is too much; returns how much it was."""
    size = 0
    while size <= most and (piece := os.read(fd, PIECE_BYTES)):
        size += len(piece)
        write(piece)
    return size


def _read_full(fd: int, size: int) -> bytes:
    """So many bytes, or all that there are."""
    data = b""
    while len(data) < size and (piece := os.read(fd, size - len(data))):
        data += piece
    return data


def _refusal(error: OSError, shown: str) -> Refused:
    match error.errno:
        case errno.ENOENT:
            return Refused(f"there is no file {shown}", way_out="look at how it is spelled")
        case errno.ELOOP | errno.ENOTDIR:
            return Refused(
                f"{shown} is a link, or not a folder", way_out="take it away, or name another path"
            )
        case errno.EISDIR:
            return Refused(f"{shown} is a folder", way_out="name a file in it")
        case _:
            return Refused(
                f"{shown}: {error.strerror}", way_out="look at the folder, and try again"
            )
