"""A tool of an MCP server, called by the real claude through the daemon, as a person sees it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import trio

from tests.botapi.server import serve_botapi
from tests.e2e.rig import ADA, Rig, new_token, open_rig
from tests.mcp.rig import SERVER
from tests.model.script import Recall, Rule, Say, Script
from tests.model.server import serve_model
from tests.real.clis import RUN_S, Cli
from tests.real.engines import MakeCli

pytestmark = pytest.mark.real

CALL = json.dumps({"tool_calls": [{"name": "t__add", "arguments": {"a": 40, "b": 2}}]})
RESULT = r"`t__add` (\w+:\n\n```text\n[^`]+)\n```"
SCRIPT: Script = (
    Rule("# Tool results", Recall(RESULT, found="It {}")),
    Rule("add forty and two", Say(f"I will add them.\n\n```json\n{CALL}\n```")),
)


def configure(rig: Rig, cli: Cli, *, more: str = "") -> None:
    env = "".join(f"claude.env.{name} = {json.dumps(text)}\n" for name, text in cli.env.items())
    rig.configure(
        f"claude.command = '{cli.program}'\nclaude.use_api_billing = true\n{env}"
        f"[mcp.servers.t]\ncommand = '{sys.executable}'\nargs = ['{SERVER}']\n{more}"
    )


@pytest.mark.parametrize(
    ("button", "told"),
    [
        ("Allow once", "It succeeded:\n\n42"),
        ("Deny", "It failed:\n\nthe person denied this call"),
    ],
)
async def test_claude_goes_on_in_its_thread_with_what_came_of_its_call(
    make_cli: MakeCli, tmp_path: Path, button: str, told: str
) -> None:
    folder = tmp_path / "takopi"
    await trio.Path(folder).mkdir()
    with trio.fail_after(RUN_S):
        async with serve_model(SCRIPT) as model, serve_botapi(token=new_token()) as api:
            api.person(ADA)
            async with open_rig(api, folder) as rig:
                configure(rig, make_cli("claude", model.base_url))
                await rig.start()
                prompt = await rig.say("/claude add forty and two")
                card = await rig.reply(prompt, "wants to use t__add")
                await rig.press(card, button)
                answer = await rig.ending(prompt)
                said = [message.text for message in rig.chat.bot_messages]
                await rig.stop()

    assert told in answer.text
    assert not any("tool_calls" in text for text in said)
    # The last thing that the model was sent is the whole of one conversation.
    turns = [(turn.role, turn.text) for turn in model.conversations[-1].turns]
    assert any(role == "user" and "add forty and two" in text for role, text in turns)
    assert any(role == "assistant" and CALL in text for role, text in turns)
    assert "# Tool results" in turns[-1][1]
