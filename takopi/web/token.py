"""The secret that opens the page: made once, kept in the home for its owner alone."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from takopi.config.paths import mode_problem
from takopi.core.errors import Unfit
from takopi.kit.atomic import replace_file

FILE = "web-token"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def keep_token(folder: Path) -> str:
    """The token of this home. It stays the same, so that an open page survives a restart."""
    path = folder / FILE
    try:
        known = _read(path)
        if known is not None:
            return known
        token = secrets.token_urlsafe(32)
        replace_file(path, token.encode())
    except OSError as error:
        raise Unfit(
            f"{path} cannot be used: {error.strerror}", way_out="move it out of the way"
        ) from error
    return token


def _read(path: Path) -> str | None:
    """What is in the file, if it is a token; refused if others may have read it."""
    try:
        mode = path.stat().st_mode
        text = path.read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    if problem := mode_problem(path, mode):
        raise Unfit(problem.what, way_out=f"rm {path}, and open the new address")
    return text if _TOKEN.fullmatch(text) else None
