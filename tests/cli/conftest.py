from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.botapi.api import BotApi
from tests.cli.command import Takopi
from tests.cli.setup_terminal import open_botapi
from tests.projects.repos import make_repo


@pytest.fixture
def takopi(tmp_path: Path) -> Takopi:
    return Takopi(tmp_path.resolve(), is_warm=True)


@pytest.fixture
async def api() -> AsyncGenerator[BotApi, None]:
    async with open_botapi() as api:
        yield api


@pytest.fixture
def ada(takopi: Takopi, api: BotApi) -> Takopi:
    """Somebody with a repository, two engines and a systemctl, who knows another Bot API."""
    takopi.environ["SHELL"] = "/bin/sh"
    takopi.cwd = make_repo(takopi.folder / "dev/z80")
    for name in ("claude", "pi", "systemctl"):
        takopi.install(name)
    takopi.write(f'api_url = "{api.url}"\n')
    return takopi
