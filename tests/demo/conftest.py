from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.demo.process import Demo, open_demo


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncGenerator[Demo, None]:
    """A demo that has not been started."""
    async with open_demo(tmp_path) as demo:
        yield demo
