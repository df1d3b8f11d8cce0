"""Shows a text in the person's own editor, or on the terminal where there is none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import typer


def find_editor(preview_command: str) -> str:
    """The command that opens a file: the configured one, else `code`; empty if there is none."""
    return preview_command or ("code" if shutil.which("code") else "")


def show_file(path: Path, preview_command: str) -> None:
    """Show a file, and come back when it has been looked at."""
    editor = find_editor(preview_command)
    if not editor or subprocess.run(_argv(editor, path), check=False).returncode:
        show_text(path.read_bytes().decode("utf-8", "replace"))


def open_file(path: Path, editor: str) -> subprocess.Popen[bytes]:
    """Open a file beside the questions; the person says when it is done."""
    return subprocess.Popen(_argv(editor, path), stdin=subprocess.DEVNULL)


def show_text(text: str) -> None:
    """Print a text without what a terminal would obey; a diff in colour."""
    for line in text.splitlines():
        typer.secho(printable(line), fg=_colour(line), err=True, color=sys.stderr.isatty())


def printable(line: str) -> str:
    """A line without what a terminal would obey."""
    return "".join(char if char.isprintable() or char == "\t" else "�" for char in line)


def _argv(editor: str, path: Path) -> list[str]:
    # The command is a line of shell, and the path its last argument, whatever is in it.
    return ["sh", "-c", f'{editor} "$1"', "sh", str(path)]


def _colour(line: str) -> str | None:
    if line.startswith("+"):
        return typer.colors.GREEN
    return typer.colors.RED if line.startswith("-") else None
