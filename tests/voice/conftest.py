from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from takopi.kit.proc import Keeper, open_keeper


@pytest.fixture
async def keeper() -> AsyncGenerator[Keeper, None]:
    async with open_keeper(on_lost=lambda: None) as keeper:
        yield keeper
