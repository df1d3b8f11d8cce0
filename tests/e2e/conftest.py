from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from tests.botapi.api import BotApi
from tests.botapi.server import serve_botapi
from tests.drafts.claude_stand_in import StandIn
from tests.drafts.tmux_server import Server
from tests.e2e.rig import ADA, Rig, new_token, open_rig


@pytest.fixture
async def api() -> AsyncGenerator[BotApi, None]:
    """A Bot API with a bot of its own: there is one daemon per bot on a machine."""
    async with serve_botapi(token=new_token()) as api:
        api.person(ADA)
        yield api


@pytest.fixture
async def rig(api: BotApi, tmp_path: Path) -> AsyncGenerator[Rig, None]:
    """A takopi with the demo engine and Ada's private chat, which has not been started."""
    async with open_rig(api, tmp_path, is_warm=True) as rig:
        yield rig


@pytest.fixture
def master(rig: Rig) -> StandIn:
    """A prompt-master that adds each input as a line."""
    stand_in = StandIn(rig.folder / "master")
    rig.configure(f'claude.command = "{stand_in.path}"')
    return stand_in


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A tmux of this test's own, which has not been started."""
    server = Server(tmp_path)
    yield server
    server.end()
