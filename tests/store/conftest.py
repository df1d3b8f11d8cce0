from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from takopi.store.opening import open_file
from takopi.store.schema import STEPS


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A writer's connection inside one transaction, as a change sees it."""
    opened = open_file(tmp_path / "state.db", steps=STEPS, busy_s=5)
    opened.writer.execute("BEGIN")
    yield opened.writer
    opened.reader.close()
    opened.writer.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"
