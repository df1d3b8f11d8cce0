from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.app.recording import Rig, config_with, open_rig
from tests.app.scope_talk import project


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig, None]:
    async with open_rig(
        tmp_path, config_with(project(tmp_path, "z80"), project(tmp_path, "Web"))
    ) as rig:
        yield rig
