"""How a prompt names the files that came with it, and what a caption says about them."""

from __future__ import annotations

import re
from collections.abc import Iterable

HEADING = "Files that came with this message:"
FORCE = "--force"

_LIST = re.compile(rf"(?:^|\n\n){re.escape(HEADING)}(?:\n- [^\n]+)+\Z")
_FORCE = re.compile(rf"\s*{re.escape(FORCE)}(?:\s+|\Z)")


def with_files(prompt: str, paths: Iterable[str]) -> str:
    """The prompt, and below it the files, each as a path from the folder that is worked in."""
    lines = [f"- {path}" for path in dict.fromkeys(paths)]
    if not lines:
        return prompt
    return "\n".join([*([prompt, ""] if prompt.strip() else []), HEADING, *lines])


def reworded(old: str, prompt: str) -> str:
    """Another prompt with the files of the old one."""
    found = _LIST.search(old)
    _, text = read_force(prompt)
    if found is None:
        return text
    listed = found[0].lstrip("\n")
    return f"{text}\n\n{listed}" if text.strip() else listed


def read_force(prompt: str) -> tuple[bool, str]:
    """Whether files may be replaced, and the prompt without the word that says so."""
    found = _FORCE.match(prompt)
    return (False, prompt) if found is None else (True, prompt[found.end() :])
