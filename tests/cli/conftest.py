from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Takopi


@pytest.fixture
def takopi(tmp_path: Path) -> Takopi:
    return Takopi(tmp_path.resolve(), is_warm=True)
