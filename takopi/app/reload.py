"""A changed config takes effect while the daemon runs; a bad one changes nothing, and is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from takopi.app.commands.table import DESCRIPTIONS
from takopi.app.notices import tell_home
from takopi.app.state import Settings
from takopi.config.loaded import Config
from takopi.config.watch import watch
from takopi.core.errors import ConfigInvalid, Problem
from takopi.present.cards import notice, refusal
from takopi.runs.schedule import Schedule
from takopi.runs.workshop import Workshop
from takopi.telegram.menu import MenuItem, build_menu

RESTART = "A new bot_token, api_url, transports or web.port takes effect after a restart."

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.app")


@dataclass(frozen=True, slots=True)
class Reload:
    """Everything that a config is handed to."""

    load: Callable[[], Config]
    shop: Workshop
    settings: Settings
    schedule: Schedule
    show: Callable[[Sequence[MenuItem]], None]

    async def watch(self, path: Path, current: Config) -> None:
        """Watch the file until cancelled."""
        await watch(
            path, self.load, current=current, on_change=self._take, on_problem=self._complain
        )

    def show_menu(self) -> None:
        """Let the chat's menu name what can be typed now."""
        known = self.shop.engines
        engines = [engine.id for engine in known if known.is_installed(engine.id)]
        aliases = self.settings.config().projects
        self.show(build_menu(DESCRIPTIONS, engines=engines, aliases=aliases))

    async def _take(self, config: Config) -> None:
        old = self.settings.config()
        self.settings.take(config)
        self.shop.engines.configure(config.engines)
        self.schedule.resize(config.limits.max_runs)
        self.show_menu()
        log.info("config.changed")
        kept = (old.bot_token, old.api_url, old.transports, old.web)
        if kept != (config.bot_token, config.api_url, config.transports, config.web):
            await tell_home(self.shop, notice(RESTART))

    async def _complain(self, problems: tuple[Problem, ...]) -> None:
        log.warning("config.refused", problems=len(problems))
        await tell_home(self.shop, refusal(ConfigInvalid(problems)))
