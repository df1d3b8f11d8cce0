"""A branch name that passes here is a ref to git, and a path that stays below its folder."""

from __future__ import annotations

import re
import unicodedata

from takopi.core.errors import Refused

MAX_BYTES = 200

_FORBIDDEN = re.compile(r"[\s~^:?*\[\\]")


def check_branch(name: str) -> None:
    """Refuse what is no branch name, without asking git: all that git refuses, and some more."""
    if fault := _fault(name):
        shown = name if len(name) <= MAX_BYTES and name.isprintable() else ascii(name[:MAX_BYTES])
        raise Refused(f"@{shown} cannot be a branch: {fault}", way_out="name another one")


def _fault(name: str) -> str:
    if not name:
        return "it has no name"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it is not Unicode"
    if size > MAX_BYTES:
        return f"it is longer than {MAX_BYTES} bytes"
    if any(unicodedata.category(char) == "Cc" for char in name):
        return "it has control characters"
    if found := _FORBIDDEN.search(name):
        return "it has a space" if found[0].isspace() else f"it has a {found[0]}"
    if name.startswith("-"):
        return "it begins with a -"
    if name.startswith("/"):
        return "it begins with a /"
    if name.endswith(("/", ".")):
        return f"it ends with a {name[-1]}"
    if "@{" in name or name in {"@", "HEAD"}:
        return "git means something else by it"
    return next((fault for part in name.split("/") if (fault := _part_fault(part))), "")


def _part_fault(part: str) -> str:
    if not part:
        return "it has an empty part"
    if ".." in part:
        return "it has a .."
    if part.lower() == ".git":
        return "it has a .git"
    if part.startswith("."):
        return "a part of it begins with a ."
    if part.endswith(".lock"):
        return "a part of it ends with .lock"
    return ""
