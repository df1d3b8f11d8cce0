from __future__ import annotations

import sys

from tests.botapi.chats import Message
from tests.e2e.rig import Rig
from tests.mcp.rig import SERVER


def tools(rig: Rig, *, more: str = "") -> None:
    rig.configure(f"[mcp.servers.t]\ncommand = '{sys.executable}'\nargs = ['{SERVER}']\n{more}")


async def card_of(rig: Rig, prompt: Message) -> Message:
    return await rig.sees(
        lambda m: m.reply_to is prompt and not m.silent and "wants to use" in m.text
    )


def never_shown(rig: Rig, part: str = "tool_calls") -> bool:
    return not any(part in m.text for m in rig.chat.bot_messages)


async def test_allowed_tool_runs_without_asking_and_its_result_comes_back_to_the_thread(
    rig: Rig,
) -> None:
    tools(rig, more="allow = ['t__a*']")
    await rig.start()

    answer = await rig.answer('tool call t__add {"a": 40, "b": 2}')

    assert "t__add" in answer.text
    assert "succeeded" in answer.text
    assert "42" in answer.text
    assert "turn 2 of this conversation" in answer.text
    assert not any("wants to use" in m.text for m in rig.chat.bot_messages)
    assert never_shown(rig)
    assert len(rig.rows("SELECT id FROM runs")) == 1


async def test_call_outside_allow_is_asked_about_and_allowed_once(rig: Rig) -> None:
    tools(rig)
    await rig.start()
    prompt = await rig.say('tool call t__add {"a": 40, "b": 2}')
    card = await card_of(rig, prompt)
    assert card.text.splitlines()[0] == "demo wants to use t__add"
    assert '"a": 40' in card.text

    await rig.press(card, "Allow once")

    assert "42" in (await rig.ending(prompt)).text
    assert never_shown(rig)


async def test_denied_call_is_told_to_the_engine(rig: Rig) -> None:
    tools(rig)
    await rig.start()
    prompt = await rig.say('tool call t__add {"a": 40, "b": 2}')

    await rig.press(await card_of(rig, prompt), "Deny")

    answer = await rig.ending(prompt)
    assert "failed" in answer.text
    assert "the person denied" in answer.text
    assert never_shown(rig)


async def test_tool_allowed_for_this_thread_is_not_asked_about_again(rig: Rig) -> None:
    tools(rig)
    await rig.start()
    prompt = await rig.say('tool call t__add {"a": 40, "b": 2}')
    await rig.press(await card_of(rig, prompt), "Allow for this thread")
    first = await rig.ending(prompt)

    again = await rig.answer('tool call t__add {"a": 1, "b": 2}', to=first)

    assert "succeeded" in again.text
    cards = [m for m in rig.chat.bot_messages if "wants to use" in m.text]
    assert len(cards) == 1


async def test_server_killed_in_a_call_fails_the_call_and_the_run_goes_on(rig: Rig) -> None:
    tools(rig, more="allow = ['*']")
    await rig.start()

    answer = await rig.answer("tool call t__die {}")

    assert "failed" in answer.text
    assert "the server is gone" in answer.text


async def test_server_that_cannot_start_is_noted_and_the_message_is_the_prompt(rig: Rig) -> None:
    rig.configure("[mcp.servers.t]\ncommand = '/no/such/program'")
    await rig.start()

    prompt = await rig.say("what did I ask first then steps 20 every 100ms")

    await rig.progress(prompt, "MCP server t: cannot start /no/such/program")
    assert "“what did I ask first" in (await rig.ending(prompt)).text


async def test_server_of_a_project_is_offered_to_its_runs_alone(rig: Rig) -> None:
    path = rig.project("z80")
    tools(rig, more=f"allow = ['*']\nprojects = ['Z80']\n[projects.z80]\npath = '{path}'")
    await rig.start()

    inside = await rig.answer('/z80 tool call t__add {"a": 40, "b": 2}')
    outside = await rig.answer('tool call t__add {"a": 40, "b": 2}')

    assert "t__add succeeded" in inside.text
    # Where no tools are offered, it is an answer like any other.
    assert "succeeded" not in outside.text
    assert '"t__add"' in outside.text


async def test_server_of_another_project_is_not_offered_and_status_lists_it(rig: Rig) -> None:
    path = rig.project("z80")
    tools(rig, more=f"projects = ['z80']\n[projects.z80]\npath = '{path}'")
    await rig.start()

    answer = await rig.answer("what did I ask first")

    assert "“what did I ask first”" in answer.text
    status = await rig.reply(await rig.say("/status"))
    assert "MCP servers: t (not started)" in status.text
