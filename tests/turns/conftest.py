from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "old.py").write_text("old = 1\n", encoding="utf-8")
    return tmp_path
