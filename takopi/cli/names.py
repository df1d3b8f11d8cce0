"""What the config may name, as far as the command line knows."""

from __future__ import annotations

from takopi.config.loaded import Names
from takopi.engines.registry import settings_types

COMMANDS = frozenset({"cancel"})


def known_names() -> Names:
    """Every engine with its settings, and the commands of the chat."""
    return Names(engines=settings_types(), commands=COMMANDS)
