"""Which engines there are: those that come with takopi, and those that plugins bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takopi.config.schema import EngineSettings
from takopi.core.ids import EngineId
from takopi.engines.plugins import Broken, Entry, load_plugins
from takopi.engines.spec import EngineSpec


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every engine that can be used, and the plugins that cannot."""

    entries: Mapping[EngineId, Entry]
    broken: tuple[Broken, ...]

    def settings_types(self) -> dict[str, type[EngineSettings]]:
        """The settings of every engine by its id: what its table in the config may say."""
        return {engine: entry.settings_type for engine, entry in self.entries.items()}


def load_catalog(home: Path) -> Catalog:
    """The engines of takopi and of the installed plugins; the demo keeps its threads in `home`."""
    from takopi.engines.claude.spec import SPEC as CLAUDE
    from takopi.engines.codex.spec import SPEC as CODEX
    from takopi.engines.demo.spec import spec as demo
    from takopi.engines.opencode.spec import SPEC as OPENCODE
    from takopi.engines.pi.spec import SPEC as PI

    own: tuple[EngineSpec[Any], ...] = (CLAUDE, CODEX, OPENCODE, PI, demo(home / "demo"))
    entries: dict[EngineId, Entry] = {entry.id: entry for entry in own}
    plugins, broken = load_plugins(entries)
    return Catalog(entries | plugins, broken)
