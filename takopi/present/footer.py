"""The last lines of what a run says: its context and its resume line, exactly as they are typed."""

from __future__ import annotations

from takopi.core.outgoing import Text
from takopi.present.compose import code, stack


def footer(ctx_line: str | None, resume_line: str | None) -> Text:
    """The ctx line, then the resume line; what there is of them, each as code."""
    return stack(code(line.strip()) for line in (ctx_line, resume_line) if line)
