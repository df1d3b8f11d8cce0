from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.botapi.api import BotApi
from tests.botapi.server import serve_botapi
from tests.e2e.rig import ADA, Rig, new_token, open_rig


@pytest.fixture
async def api() -> AsyncGenerator[BotApi, None]:
    """A Bot API with a bot of its own: there is one daemon per bot on a machine."""
    async with serve_botapi(token=new_token()) as api:
        api.person(ADA)
        yield api


@pytest.fixture
async def rig(api: BotApi, tmp_path: Path) -> AsyncGenerator[Rig, None]:
    """A takopi with the demo engine and Ada's private chat, which has not been started."""
    async with open_rig(api, tmp_path) as rig:
        yield rig
