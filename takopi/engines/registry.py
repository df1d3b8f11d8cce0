"""Every engine of the catalog, ready to run as the config wants it now."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

from takopi.config.schema import EngineSettings
from takopi.core.errors import Refused
from takopi.core.ids import EngineId
from takopi.core.ports import Engine
from takopi.engines.catalog import Catalog
from takopi.engines.guard import AsyncioLoop, GuardedEngine
from takopi.engines.plugins import Broken, EnginePlugin
from takopi.engines.pump import CliEngine
from takopi.engines.spec import EngineSpec
from takopi.kit.proc import Keeper


class Engines:
    """The engines of a catalog with their settings. `configure` changes those of later runs."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        keeper: Keeper,
        environ: Mapping[str, str],
        secrets: tuple[str, ...],
        loop: AsyncioLoop | None,
    ) -> None:
        self.catalog = catalog
        self._keeper = keeper
        self._environ = environ
        self._secrets = secrets
        self._loop = loop
        self._engines: dict[EngineId, Engine] = {}
        self._programs: dict[EngineId, str] = {}
        self.broken = catalog.broken
        self.configure({})

    @property
    def keeper(self) -> Keeper:
        """Who starts the engines' processes, and whoever else's."""
        return self._keeper

    def configure(self, settings: Mapping[str, EngineSettings]) -> None:
        """Take new settings; an engine without any has its defaults."""
        self._engines = {}
        self.broken = self.catalog.broken
        for engine, entry in self.catalog.entries.items():
            chosen = settings.get(engine) or entry.settings_type()
            if isinstance(entry, EngineSpec):
                cli = CliEngine(entry, chosen, self._keeper, self._environ, self._secrets)
                self._engines[engine] = GuardedEngine(engine, cli)
                self._programs[engine] = cli.program[0]
            else:
                self._add_plugin(entry, chosen)

    def _add_plugin(self, plugin: EnginePlugin[EngineSettings], settings: EngineSettings) -> None:
        loop = self._loop if plugin.flavor == "asyncio" else None
        try:
            made = plugin.make(settings)
        except Exception as error:  # ruff: ignore[blind-except] reported, and the others work on
            reason = f"{type(error).__name__}: {error}"
            self.broken = (*self.broken, Broken(plugin.id, reason))
        else:
            self._engines[plugin.id] = GuardedEngine(plugin.id, made, loop)

    def __iter__(self) -> Iterator[Engine]:
        return iter(self._engines.values())

    def get(self, engine: EngineId) -> Engine:
        """The engine by its id; refused if there is none."""
        try:
            return self._engines[engine]
        except KeyError:
            known = ", ".join(self._engines)
            raise Refused(f"there is no engine {engine}", way_out=f"use one of {known}") from None

    def asks(self, engine: EngineId) -> bool:
        """Whether the engine asks people, or follows its own permission settings."""
        entry = self.catalog.entries.get(engine)
        return entry is not None and entry.asks

    def is_installed(self, engine: EngineId) -> bool:
        """Whether its program can be found now; what is no program of its own always is."""
        if engine not in self._programs:
            return engine in self._engines
        return shutil.which(self._programs[engine], path=self._environ.get("PATH")) is not None


@asynccontextmanager
async def open_engines(
    catalog: Catalog, *, keeper: Keeper, environ: Mapping[str, str], secrets: tuple[str, ...] = ()
) -> AsyncGenerator[Engines, None]:
    """The engines for as long as the block lasts, with a loop for those that need asyncio."""
    plugins = (entry for entry in catalog.entries.values() if isinstance(entry, EnginePlugin))
    if any(plugin.flavor == "asyncio" for plugin in plugins):
        # Imported only where a plugin needs it: it brings asyncio along.
        import trio_asyncio

        async with trio_asyncio.open_loop() as opened:  # pyright: ignore[reportUnknownMemberType] it is untyped
            loop = cast("AsyncioLoop", opened)
            yield Engines(catalog, keeper=keeper, environ=environ, secrets=secrets, loop=loop)
    else:
        yield Engines(catalog, keeper=keeper, environ=environ, secrets=secrets, loop=None)
