"""The config as it is now, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

from takopi.config.loaded import Config
from takopi.routing.authorize import Envelope, Gate


class Settings:
    """The present config. `engine` overrides its default engine for as long as the daemon runs."""

    def __init__(self, config: Config, *, engine: str | None = None) -> None:
        self._engine = engine
        self._config = self._with_engine(config)
        self._gate = Gate(self._config)

    def config(self) -> Config:
        """The config as it is now."""
        return self._config

    def allows(self, envelope: Envelope) -> bool:
        """Whether somebody is let in, by the config as it is now."""
        return self._gate.allows(envelope)

    def take(self, config: Config) -> None:
        """Use another config from now on."""
        self._config = self._with_engine(config)
        self._gate = Gate(self._config)

    def _with_engine(self, config: Config) -> Config:
        if self._engine is None:
            return config
        projects = {
            alias: replace(project, default_engine=self._engine)
            for alias, project in config.projects.items()
        }
        return replace(config, default_engine=self._engine, projects=projects)
