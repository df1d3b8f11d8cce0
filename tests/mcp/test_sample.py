from __future__ import annotations

import sys
from pathlib import Path

from takopi.config.schema import McpServer
from tests.mcp.rig import open_servers

SAMPLE = McpServer(command=sys.executable, args=("-m", "takopi.mcp.sample"))


async def test_sample_server_offers_its_tools_and_they_work(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"sample": SAMPLE}) as servers:
        offer = await servers.offer(None)
        assert offer.problems == ()
        assert {tool.name for tool in offer.tools} == {"sample__add", "sample__count_words"}
        assert all(tool.description for tool in offer.tools)

        assert await servers.call("sample__add", {"a": 40, "b": 2.5}) == "42.5"
        assert await servers.call("sample__count_words", {"text": "an octopus  swims"}) == "3"
