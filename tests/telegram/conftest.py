from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.botapi.api import BotApi
from tests.botapi.server import serve_botapi
from tests.telegram.rig import ADA, Rig, open_rig


@pytest.fixture
async def api() -> AsyncGenerator[BotApi, None]:
    async with serve_botapi() as api:
        api.person(ADA)
        yield api


@pytest.fixture
async def rig(api: BotApi, tmp_path: Path) -> AsyncGenerator[Rig, None]:
    """The sending half, with Ada's private chat."""
    async with open_rig(api, tmp_path) as rig:
        yield rig
