"""The ctx line of a footer: written so that a reply to it is read back as the same context."""

from __future__ import annotations

import re

from takopi.core.context import Context

# Neighbouring parts have no character in common, so that a long line costs no more than its length.
_LINE = re.compile(
    r"[\s`]*ctx[\s`]*:[\s`]*(?P<project>[^\s`@]+)[\s`]*(?:@[\s`]*(?P<branch>[^\s`]+)[\s`]*)?",
    re.IGNORECASE,
)


def format_ctx(context: Context) -> str:
    """The line that names a context in a footer."""
    if context.branch is None:
        return f"ctx: {context.project}"
    return f"ctx: {context.project} @ {context.branch}"


def parse_ctx(text: str) -> Context | None:
    """The context that the last ctx line in `text` names.

    Case, spacing and stray backticks do not matter. A line with more words is no ctx line.
    """
    for line in reversed(text.splitlines()):
        if found := _LINE.fullmatch(line):
            return Context(found["project"], found["branch"])
    return None
