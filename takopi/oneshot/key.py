"""Finds the API key, in a private place only, and never repeats it in a message.

The file that `oneshot.api_key_file` names comes first: it is meant for takopi, while
ANTHROPIC_API_KEY may be there for something else.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path

from takopi.config.paths import mode_problem
from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import NotConfigured

VARIABLE = "ANTHROPIC_API_KEY"
SET_FILE = "`takopi config set oneshot.api_key_file PATH` with a file that holds an API key"

_MAX_BYTES = 4096
# What an HTTP header can carry as it is.
_KEY = re.compile(r"[!-~]+")


def find_key(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """The key, or None if none is set; `NotConfigured` if one is, and cannot be used."""
    if settings.api_key_file is not None:
        return _checked(_read(settings.api_key_file), str(settings.api_key_file), way_out=SET_FILE)
    if named := environ.get(VARIABLE, "").strip():
        return _checked(named, VARIABLE, way_out=f"set {VARIABLE} to a key, or unset it")
    return None


def _checked(key: str, place: str, *, way_out: str) -> str:
    if not _KEY.fullmatch(key):
        raise NotConfigured(f"{place} does not hold an API key", way_out=way_out)
    return key


def _read(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise NotConfigured(f"oneshot.api_key_file: {path} is not a file", way_out=SET_FILE)
        if problem := mode_problem(path, status.st_mode):
            raise NotConfigured(f"oneshot.api_key_file: {problem.what}", way_out=problem.way_out)
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError as error:
        what = f"oneshot.api_key_file: {path} cannot be read: {error.strerror}"
        raise NotConfigured(what, way_out=SET_FILE) from error
    return data.decode("utf-8", "replace").strip()
