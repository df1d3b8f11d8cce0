"""The clipboard of the desktop, by whichever program of it is installed."""

from __future__ import annotations

import shutil
import subprocess

from takopi.core.errors import Unfit

_PROGRAMS = (
    (("wl-paste", "--no-newline"), ("wl-copy",)),
    (("xclip", "-selection", "clipboard", "-o"), ("xclip", "-selection", "clipboard")),
    (("xsel", "--clipboard", "--output"), ("xsel", "--clipboard", "--input")),
    (("pbpaste",), ("pbcopy",)),
)
LIMIT_S = 10.0


def paste() -> str:
    """What is on the clipboard; `Unfit` if it cannot be read."""
    for read, _ in _PROGRAMS:
        if shutil.which(read[0]):
            return _run(read).decode("utf-8", "replace")
    raise Unfit(
        "there is no clipboard: wl-paste, xclip, xsel and pbpaste are all missing",
        way_out="name a file, or - for stdin",
    )


def copy(text: str) -> bool:
    """Put a text on the clipboard; False if there is none."""
    for _, write in _PROGRAMS:
        if shutil.which(write[0]):
            _run(write, text.encode("utf-8", "surrogatepass"))
            return True
    return False


def _run(argv: tuple[str, ...], data: bytes = b"") -> bytes:
    # The writers stay behind to serve the clipboard, and would hold a pipe of ours open.
    out = None if data else subprocess.PIPE
    try:
        done = subprocess.run(argv, input=data, stdout=out, timeout=LIMIT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unfit(f"{argv[0]} failed: {error}", way_out="name a file, or - for stdin") from error
    return done.stdout or b""
