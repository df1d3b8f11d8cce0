"""The shape of takopi.toml: every key, its type, its bounds and its default."""

from __future__ import annotations

import msgspec


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that every engine's table has. An engine adds its own by subclassing."""

    command: str = ""
    """Path or name of the program; empty means the engine's own name on PATH."""
    model: str | None = None
    extra_args: tuple[str, ...] = ()
    env: dict[str, str] = {}
