"""What the buttons of a plan carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from takopi.telegram.buttons import Codec

Verb = Literal[
    "approve", "review", "modify", "skip", "quit",
    "check", "uncheck", "all", "none", "page", "preview", "confirm", "back",
    "edit", "file", "list", "keep",
    "fail", "goon", "next", "retry", "stop",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReviewPress:
    """What is to be done with a review, as it was at a step."""

    review: int
    step: int
    what: Verb
    item: int = 0


REVIEW = Codec("pv", ReviewPress)
