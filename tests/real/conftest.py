"""Finds the real CLIs, and says where to get them if they are not there."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from takopi.kit.proc import Keeper, open_keeper
from tests.real.clis import ENGINES, Cli, prepare

GET_THEM = "scripts/test --real"


@pytest.fixture(scope="session")
def cli_folder() -> Path:
    """The folder with the launchers. Its absence is a reason to skip, but not in CI."""
    named = os.environ.get("TAKOPI_REAL_CLIS")
    if not named:
        reason = f"the real CLIs are not here; get them with: {GET_THEM}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = Path(named).absolute()
    missing = [engine for engine in ENGINES if not os.access(folder / engine, os.X_OK)]
    if missing:
        pytest.fail(f"{folder} has no {', '.join(missing)}; get them with: {GET_THEM}")
    return folder


@pytest.fixture
def make_cli(cli_folder: Path, tmp_path: Path) -> Callable[[str, str], Cli]:
    """Sets up an engine against a model: `make_cli(engine, model.base_url)`."""

    def make(engine: str, base_url: str) -> Cli:
        return prepare(engine, folder=cli_folder, root=tmp_path, base_url=base_url)

    return make


@pytest.fixture
async def keeper() -> AsyncGenerator[Keeper, None]:
    async with open_keeper(on_lost=lambda: None) as keeper:
        yield keeper
