"""What a run works on: a project and, if one was named, a branch of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """A project by its alias, and a branch of it; without one, the project as it is checked out."""

    project: str
    branch: str | None = None
