from __future__ import annotations

import json
import sys
from pathlib import Path

import trio

from tests.botapi.chats import Message
from tests.e2e.rig import Rig
from tests.e2e.test_tools import tools
from tests.mcp.rig import SERVER


def noting_codex(rig: Rig) -> Path:
    """Let codex be a program that notes what it is sent, and answers nothing."""
    program, noted = rig.folder / "codex", rig.folder / "sent"
    # Of one that fails, takopi asks the version afterwards.
    program.write_text(f"#!/bin/sh\n[ \"$1\" = exec ] && cat > '{noted}'\n")
    program.chmod(0o755)
    config = rig.home / "takopi.toml"
    config.write_text(f"{config.read_text()}\n[codex]\ncommand = '{program}'\n")
    return noted


async def sent_for(rig: Rig, text: str, noted: Path) -> bytes:
    """What the engine is sent for a message."""
    await rig.ending(await rig.say(text), "error")
    return await trio.Path(noted).read_bytes()


def file_of(rig: Rig, message: Message) -> bytes:
    return rig.api.world.files[message.fields["document"]["file_id"]].data


async def test_preview_of_a_message_alone_is_that_message_and_nothing_runs(rig: Rig) -> None:
    rig.configure("interview.auto = false")
    noted = noting_codex(rig)
    await rig.start()
    text = "fix   the *parser*\n\n  and `test` it"

    shown = await rig.reply(await rig.say(f"/preview /codex {text}"))

    assert shown.text.startswith("codex\nabout 9 tokens\ncharacters: Message 35\n")
    assert shown.text.endswith(f"\nmessage:\n{text}")
    assert not await trio.Path(noted).exists()
    assert not rig.rows("SELECT id FROM runs")
    assert await sent_for(rig, f"/codex {text}", noted) == text.encode()


async def test_long_preview_comes_as_files_that_are_what_is_sent_byte_for_byte(rig: Rig) -> None:
    tools(rig)
    noted = noting_codex(rig)
    await rig.start()
    text = "look:\n\tat this\n" + "x" * 3000

    prompt = await rig.say(f"/preview /codex {text}")
    system = await rig.reply(prompt, "system prompt")
    message = await rig.sees(lambda m: m.reply_to is prompt and m.text == "message")

    assert system.fields["document"]["file_name"] == "system-prompt.md"
    assert message.fields["document"]["file_name"] == "message.md"
    assert b"t__add" in file_of(rig, message)
    sent = await sent_for(rig, f"/codex {text}", noted)
    assert sent == file_of(rig, system) + b"\n\n" + file_of(rig, message)


async def test_preview_of_a_reply_is_what_goes_on_in_its_thread(rig: Rig) -> None:
    await rig.start()
    first = await rig.answer("remember the number 42")
    assert "demo --resume " in first.text

    shown = await rig.reply(await rig.say("/preview and what now", to=first), "message:")

    assert shown.text.endswith("\nmessage:\nand what now")
    assert len(rig.rows("SELECT id FROM runs")) == 1


async def test_preview_of_nothing_and_of_what_cannot_run_say_so(rig: Rig) -> None:
    await rig.start()

    assert "/preview <message>" in (await rig.reply(await rig.say("/preview"))).text
    refused = await rig.reply(await rig.say("/preview @nowhere do it"))
    assert "@nowhere names a branch, but no project" in refused.text


def slow_server(rig: Rig) -> Path:
    """Let the runs of z80 have a server that takes its time, until a file is there: that file."""
    path, go = rig.project("z80"), rig.folder / "go"
    waiting = f"while [ ! -e '{go}' ]; do sleep 0.05; done; exec '{sys.executable}' '{SERVER}'"
    rig.configure(
        f"[mcp.servers.t]\ncommand = 'sh'\nargs = ['-c', {json.dumps(waiting)}]\n"
        f"projects = ['z80']\n[projects.z80]\npath = '{path}'"
    )
    return go


async def test_preview_that_takopi_stops_on_its_way_is_told_of_after_the_next_start(
    rig: Rig,
) -> None:
    slow_server(rig)
    await rig.start()
    await rig.say("/preview /z80 what now")
    await rig.until_so(lambda: bool(rig.rows("SELECT 1 FROM inbox WHERE state = 'taken'")))

    assert await rig.stop() == 0
    await rig.start()

    await rig.sees_text("takopi was stopped while it handled a message")


async def test_chat_goes_on_while_the_servers_of_a_preview_start(rig: Rig) -> None:
    go = slow_server(rig)
    await rig.start()

    asked = await rig.say("/preview /z80 what now")
    help_ = await rig.reply(await rig.say("/help"))
    answer = await rig.answer("remember the number 42")
    assert not any(m.reply_to is asked for m in rig.chat.bot_messages)

    await trio.Path(go).touch()
    shown = await rig.sees(lambda m: m.reply_to is asked and m.text == "message")
    assert b"t__add" in file_of(rig, shown)
    assert max(help_.id, answer.id) < shown.id


async def test_preview_says_which_server_did_not_start(rig: Rig) -> None:
    rig.configure("interview.auto = false\n[mcp.servers.t]\ncommand = '/no/such/program'")
    await rig.start()

    shown = await rig.reply(await rig.say("/preview hello"))

    assert "MCP server t: cannot start /no/such/program" in shown.text
    assert shown.text.endswith("\nmessage:\nhello")
