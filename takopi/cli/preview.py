"""Shows a text in the person's own editor, or on the terminal where there is none."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Self

import typer

from takopi.cli.errors import printable

ON_TERMINAL = frozenset({
    "bat", "emacsclient", "hx", "joe", "kak", "less", "mcedit", "micro", "more", "most",
    "nano", "ne", "nvim", "pico", "vi", "view", "vim",
})  # fmt: skip
"""Previewers that need the terminal itself; the others open a window of their own."""


def find_editor(preview_command: str) -> str:
    """The command that opens a file: the configured one, else `code`; empty if there is none."""
    return preview_command or ("code" if shutil.which("code") else "")


def needs_terminal(editor: str) -> bool:
    """Whether an editor takes the terminal over until it is closed."""
    try:
        words = shlex.split(editor)
    except ValueError:
        return False
    return bool(words) and (Path(words[0]).name in ON_TERMINAL or words[1:2] == ["-nw"])


def open_here(path: Path, editor: str) -> int:
    """Lend an editor the terminal until it is closed; its exit code."""
    # Ctrl-C is the editor's meanwhile. A handler, unlike SIG_IGN, is not handed down to it.
    before = signal.signal(signal.SIGINT, _leave_it)
    try:
        return subprocess.run(_argv(editor, path), check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def open_beside(path: Path, editor: str) -> subprocess.Popen[bytes]:
    """Open a file in a window; it has nothing of this terminal, and outlives this process."""
    return subprocess.Popen(
        _argv(editor, path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def show_file(path: Path, preview_command: str) -> None:
    """Show a file, and come back when it has been looked at."""
    editor = find_editor(preview_command)
    if not editor or open_here(path, editor):
        show_text(path.read_bytes().decode("utf-8", "replace"))


def show_text(text: str) -> None:
    """Print a text without what a terminal would obey."""
    for line in text.splitlines():
        typer.secho(printable(line), err=True, color=sys.stderr.isatty())


class Draft:
    """A text in a file of its own, named like the one it stands for, until it is closed."""

    def __init__(self, path: str, text: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="takopi-preview-")
        self.file = Path(self.folder.name) / (Path(path).name or "preview")
        self.file.write_bytes(text.encode("utf-8", "surrogatepass"))

    def read(self) -> str:
        """What the person has saved."""
        return self.file.read_bytes().decode("utf-8", "replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()


def _leave_it(signum: int, frame: FrameType | None) -> None:
    """A key that was not meant for this process."""


def _argv(editor: str, path: Path) -> list[str]:
    # The command is a line of shell, and the path its last argument, whatever is in it.
    return ["sh", "-c", f'{editor} "$1"', "sh", str(path)]
