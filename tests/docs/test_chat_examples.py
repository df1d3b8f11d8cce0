"""Every message that a page shows is sent to a real takopi, and does what such a message does."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from takopi.cli.demo_project import ALIAS, TOOLS, make_project
from takopi.engines.demo.child.words import read_words
from tests.botapi.chats import Message
from tests.botapi.server import serve_botapi
from tests.docs.pages import Block, blocks
from tests.drafts.tmux_server import Server
from tests.e2e.rig import ADA, Rig, new_token, open_rig

UNENDING = {"hang", "ask approval", "tool call"}
"""Words of the demo engine after which somebody has to press something."""
CONFIG = """\
default_project = "{alias}"
drafts.backend = "demo"
drafts.tmux_socket = "{tmux}"
projects.{alias}.path = "{path}"
projects.{tools}.path = "{path}"
projects.z80.path = "{path}"
mcp.servers.sample.command = "{python}"
mcp.servers.sample.args = ["-m", "takopi.mcp.sample"]
"""


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig, None]:
    """The takopi of somebody who has all that the pages speak of: projects, a server, a window."""
    tmux = Server(tmp_path)
    tmux.start()
    tmux.tmux("new-window", "-t", "work:2", "cat")
    project = tmp_path / ALIAS
    await make_project(project)
    try:
        async with serve_botapi(token=new_token()) as api:
            api.person(ADA)
            async with open_rig(api, tmp_path, is_warm=True) as rig:
                rig.configure(
                    CONFIG.format(
                        alias=ALIAS,
                        tools=TOOLS,
                        path=project,
                        tmux=tmux.name,
                        python=sys.executable,
                    )
                )
                yield rig
    finally:
        tmux.end()


@pytest.mark.parametrize("block", blocks("chat"), ids=str)
async def test_message_of_the_page_is_understood(rig: Rig, block: Block) -> None:
    await rig.start()
    for number, text in enumerate(block.text.splitlines(), 1):
        message = await rig.say(text)
        await rig.sees(lambda m, said=message: m.id > said.id)
        await rig.until_settled(number)
        assert rig.rows("SELECT state FROM inbox ORDER BY id DESC LIMIT 1") == [("done",)], text
        await until_run(rig, message, text)


async def until_run(rig: Rig, message: Message, text: str) -> None:
    """Until the run of the message, if it made one, has come as far as it can by itself."""
    prompt = re.sub(r"^([/@]\S+\s+)*", "", text)
    words = {step.name for step in read_words(prompt)}
    runs = "SELECT state FROM runs WHERE prompt_message_id = ?"
    if not rig.rows(runs, message.id):
        return
    if words & UNENDING:
        await rig.until_so(lambda: rig.rows(runs, message.id) == [("running",)])
        return
    await rig.ending(message, "error" if "fail" in words else "done")
