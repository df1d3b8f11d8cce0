"""The rig of these tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.faults.rig import FaultRig, open_fault_rig


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[FaultRig, None]:
    """A takopi with the demo engine and Ada's private chat, which has not been started."""
    async with open_fault_rig(tmp_path) as rig:
        yield rig
