from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import NotConfigured
from takopi.kit.proc import Keeper
from takopi.oneshot.choose import open_oneshot
from takopi.oneshot.cli import Claude
from takopi.oneshot.port import Oneshot
from tests.model.script import Rule, Say
from tests.model.server import serve_model

WAIT_S = 60
CLAUDE = """#!/bin/sh
printf '{"result": "claude", "is_error": false}'
"""
KEY = {"ANTHROPIC_API_KEY": "key"}


def install(folder: Path) -> None:
    path = folder / "claude"
    path.write_text(CLAUDE)
    path.chmod(0o755)


@asynccontextmanager
async def choosing(
    keeper: Keeper, settings: Settings, environ: Mapping[str, str]
) -> AsyncGenerator[Oneshot]:
    with trio.fail_after(WAIT_S):
        async with open_oneshot(
            settings, keeper, claude=Claude(), environ=environ, grace_s=1
        ) as oneshot:
            yield oneshot


@pytest.mark.parametrize(
    ("backend", "environ", "answer"),
    [
        ("auto", KEY, "api"),
        ("auto", {}, "claude"),
        ("api", KEY, "api"),
        ("cli", KEY, "claude"),
        ("cli", {}, "claude"),
    ],
)
async def test_a_key_decides_unless_the_config_does(
    keeper: Keeper, tmp_path: Path, backend: str, environ: dict[str, str], answer: str
) -> None:
    install(tmp_path)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    async with serve_model([Rule("", Say("api"))]) as model:
        settings = Settings(backend=backend, base_url=model.base_url)  # pyright: ignore[reportArgumentType]  # from a table
        async with choosing(keeper, settings, {**environ, **path}) as oneshot:
            assert await oneshot.ask("", "hello") == answer


@pytest.mark.parametrize("backend", ["auto", "api", "cli"])
async def test_without_any_way_to_a_model_the_way_out_is_named(
    keeper: Keeper, tmp_path: Path, backend: str
) -> None:
    settings = Settings(backend=backend)  # pyright: ignore[reportArgumentType]  # from a table
    async with choosing(keeper, settings, {"PATH": str(tmp_path)}) as oneshot:
        with pytest.raises(NotConfigured) as caught:
            await oneshot.ask("", "hello")
    ways = {"oneshot.api_key_file": backend != "cli", "npm install": backend != "api"}
    assert {way: way in caught.value.way_out for way in ways} == ways


async def test_a_key_that_cannot_be_used_is_said_and_not_passed_over(
    keeper: Keeper, tmp_path: Path
) -> None:
    install(tmp_path)
    settings = Settings(api_key_file=tmp_path / "none")
    async with choosing(keeper, settings, {"PATH": f"{tmp_path}:/bin"}) as oneshot:
        with pytest.raises(NotConfigured, match="cannot be read"):
            await oneshot.ask("", "hello")


async def test_a_claude_that_is_installed_later_will_do(keeper: Keeper, tmp_path: Path) -> None:
    async with choosing(keeper, Settings(), {"PATH": f"{tmp_path}:/bin"}) as oneshot:
        with pytest.raises(NotConfigured):
            await oneshot.ask("", "hello")
        install(tmp_path)
        assert await oneshot.ask("", "hello") == "claude"


def test_the_sdk_is_not_imported_before_the_first_question() -> None:
    program = (
        "import sys, trio\n"
        "from takopi.config.schema import Oneshot\n"
        "from takopi.kit.proc import open_keeper\n"
        "from takopi.oneshot.choose import open_oneshot\n"
        "from takopi.oneshot.cli import Claude\n"
        "async def main():\n"
        "    async with open_keeper(on_lost=print) as keeper, open_oneshot(\n"
        "        Oneshot(), keeper, claude=Claude(), environ={}, grace_s=1):\n"
        "        print([name for name in ('anthropic', 'pydantic') if name in sys.modules])\n"
        "trio.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=WAIT_S
    )
    assert done.stdout == "[]\n"
