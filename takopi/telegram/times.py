"""How long the server may take, and how long it is left alone, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """All of them are seconds. Together, a dead connection is left within 75 of them."""

    poll_s: int = 50
    """The server holds a request for updates that it has nothing for."""
    answer_s: float = 10.0
    """It may take this much longer before the connection is given up."""
    empty_s: float = 1.0
    """At least this is between two requests that brought nothing."""
    conflict_s: float = 10.0
    """Pause while somebody else receives: the two must not chase each other."""
    sign_s: float = 60.0
    """In a longer pause a sign of life is given this often."""
    calm_s: float = 600.0
    """A conflict this long after the last one is another one, and told again."""
    request_s: float = 20.0
    """A request may take this long; one with a file longer, by its size."""
    press_s: float = 10.0
    """A press may wait this long for its answer: then nobody looks any more."""
    stop_s: float = 3.0
    """What is on its way at a stop may take this long."""
