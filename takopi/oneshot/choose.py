"""Picks the way to a model that the `[oneshot]` table and this machine allow, question by question.

Nothing is decided at the start: a key that is set or a claude that is installed later will do.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import NotConfigured
from takopi.kit.proc import Keeper
from takopi.oneshot.api import Api, open_api
from takopi.oneshot.asker import Asker
from takopi.oneshot.backend import Backend
from takopi.oneshot.cli import INSTALL, Claude, Cli
from takopi.oneshot.demo import Demo
from takopi.oneshot.key import SET_FILE, VARIABLE, find_key
from takopi.oneshot.port import Oneshot

WAY_OUT = f"{SET_FILE}, set {VARIABLE}, or install claude with `{INSTALL}`"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The API if there is a key for it, else claude, unless the config names one of them.

    With `is_demo`, what nobody has chosen is the script: the engine is one, too.
    """

    api: Api
    cli: Cli
    is_demo: bool = False

    async def complete(self, system: str, user: str) -> str:
        """What the chosen one says."""
        backend = await trio.to_thread.run_sync(self._choose)
        return await backend.complete(system, user)

    def _choose(self) -> Backend:
        settings = self.api.settings
        if settings.backend == "api":
            return self.api
        if settings.backend == "cli":
            return self.cli
        if settings.backend == "demo":
            return Demo()
        if find_key(settings, self.api.environ) is not None:
            return self.api
        if self.is_demo:
            return Demo()
        path = {**self.cli.environ, **self.cli.claude.env}.get("PATH")
        if shutil.which(self.cli.claude.command, path=path):
            return self.cli
        raise NotConfigured("no model can be asked: no API key, and no claude", way_out=WAY_OUT)


@asynccontextmanager
async def open_oneshot(
    settings: Settings,
    keeper: Keeper,
    *,
    claude: Claude,
    environ: Mapping[str, str],
    secrets: tuple[str, ...] = (),
    grace_s: float,
    is_demo: bool = False,
) -> AsyncGenerator[Oneshot, None]:
    """Short questions for as long as the block lasts.

    `environ` is the daemon's own environment; a child gets none of its `secrets`.
    """
    cli = Cli(
        settings=settings,
        claude=claude,
        keeper=keeper,
        environ=environ,
        secrets=secrets,
        grace_s=grace_s,
    )
    async with open_api(settings, environ) as api:
        yield Asker(Chosen(api, cli, is_demo))
