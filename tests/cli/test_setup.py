"""The whole set-up as a conversation on a terminal, with a Bot API on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.botapi.api import BotApi
from tests.cli.command import Takopi
from tests.cli.setup_terminal import (
    WITHIN_S,
    Terminal,
    config,
    open_terminal,
    without_terminal,
)
from tests.e2e.rig import ADA

ABORTED = 4
MALLORY = 6666
TOKEN_QUESTION = "bot token (not shown; Enter for not now):"
ENGINE_QUESTION = "default engine: claude, pi [claude]:"
ALIAS_QUESTION = "alias of this project [z80]:"
SERVICE_QUESTION = "Let systemd run takopi, also after a restart of this machine? [y/N]:"


async def send_code(terminal: Terminal, api: BotApi) -> None:
    code = await terminal.code()
    person = api.person(ADA)
    await person.send(person.chat, f"/start {code}")


async def test_whole_conversation_sets_everything_up(ada: Takopi, api: BotApi) -> None:
    async with open_terminal(ada, "init") as terminal:
        await terminal.answer(TOKEN_QUESTION, f"{api.token}\n")
        await send_code(terminal, api)
        await terminal.answer(ENGINE_QUESTION, "pi\n")
        await terminal.answer(ALIAS_QUESTION, "\n")
        await terminal.answer(SERVICE_QUESTION, "perhaps\n")
        await terminal.asks("hint: type y or n")
        await terminal.answer(SERVICE_QUESTION, "n\n")
        assert await terminal.ends() == 0, terminal.seen

    said = config(ada)
    assert said["bot_token"] == api.token
    assert said["chat_id"] == ADA
    assert said["default_engine"] == "pi"
    assert said["projects"]["z80"]["path"] == str(ada.cwd)
    assert said["projects"]["z80"]["default_engine"] == "pi"
    assert f"takopi is set up: run `takopi`, and then write to @{api.bot.username}" in terminal.seen
    assert api.token not in terminal.seen
    assert api.token.partition(":")[2] not in terminal.seen
    assert "hint: takopi cannot run" not in terminal.seen
    (greeting,) = api.person(ADA).chat.bot_messages
    assert greeting.text.startswith("This chat is paired with takopi on ")


STOPS = [TOKEN_QUESTION, "Waiting", ENGINE_QUESTION, ALIAS_QUESTION, SERVICE_QUESTION]


async def talk(terminal: Terminal, api: BotApi, questions: list[str]) -> None:
    """Answer these questions, in this order; no other may come between."""
    for question in questions:
        if question == "Waiting":
            await send_code(terminal, api)
        else:
            token = question == TOKEN_QUESTION
            await terminal.answer(question, f"{api.token}\n" if token else "\n")


@pytest.mark.parametrize("stop", range(len(STOPS)), ids=[stop.split(":")[0] for stop in STOPS])
@pytest.mark.parametrize("how", ["kill", "ctrl-c"])
async def test_set_up_that_was_stopped_goes_on_where_it_was(
    ada: Takopi, api: BotApi, stop: int, how: str
) -> None:
    async with open_terminal(ada, "init") as terminal:
        await talk(terminal, api, STOPS[:stop])
        await terminal.asks(STOPS[stop])
        if how == "kill":
            await terminal.kill()
        else:
            terminal.type("\x03")
            assert await terminal.ends() == ABORTED, terminal.seen
            assert "Traceback" not in terminal.seen

    async with open_terminal(ada, "init") as terminal:
        await talk(terminal, api, STOPS[stop:])
        assert await terminal.ends() == 0, terminal.seen
    for question in STOPS[:stop]:
        assert question not in terminal.seen
    assert config(ada)["chat_id"] == ADA
    assert "z80" in config(ada)["projects"]
    assert "takopi is set up" in terminal.seen
    assert sorted(path.name for path in ada.home.iterdir()) == ["takopi.lock", "takopi.toml"]


async def test_set_up_can_be_stopped_while_the_login_shell_hangs(ada: Takopi, api: BotApi) -> None:
    (ada.folder / ".profile").write_text('mkfifo "$HOME/door"; cat "$HOME/door"\n', "utf-8")
    ada.write(f'api_url = "{api.url}"\nbot_token = "{api.token}"\n')
    async with open_terminal(ada, "init") as terminal:
        await send_code(terminal, api)
        await terminal.asks("paired with chat")
        # Until the profile waits at its door.
        with trio.fail_after(WITHIN_S):
            while True:
                if (ada.folder / "door").exists():
                    break
                await trio.sleep(0.01)
        terminal.type("\x03")
        assert await terminal.ends() == ABORTED, terminal.seen
    assert "Traceback" not in terminal.seen


async def test_after_the_set_up_init_only_registers(ada: Takopi, api: BotApi) -> None:
    ada.write(f'bot_token = "{api.token}"\nchat_id = {ADA}\n')
    async with open_terminal(ada, "init") as terminal:
        await terminal.answer(ALIAS_QUESTION, "\n")
        assert await terminal.ends() == 0, terminal.seen
    assert "systemd" not in terminal.seen
    assert "takopi is set up" not in terminal.seen
    assert not api.requests


async def test_only_engine_is_taken_without_a_question(ada: Takopi, api: BotApi) -> None:
    (ada.tools / "claude").unlink()
    async with open_terminal(ada, "init", "--no-project", "--no-service") as terminal:
        await talk(terminal, api, [TOKEN_QUESTION, "Waiting"])
        assert await terminal.ends() == 0, terminal.seen
    assert config(ada)["default_engine"] == "pi"


async def test_token_that_telegram_does_not_know_is_asked_for_again(
    ada: Takopi, api: BotApi
) -> None:
    api.expect_rejection("Unauthorized")
    async with open_terminal(ada, "init", "--no-project", "--no-service") as terminal:
        await terminal.answer(TOKEN_QUESTION, "hello\n")
        await terminal.asks("that is no bot token")
        await terminal.answer(TOKEN_QUESTION, f"{api.token}x\n")
        await terminal.asks("Telegram does not know a bot with this token")
        await talk(terminal, api, [TOKEN_QUESTION, "Waiting", ENGINE_QUESTION])
        assert await terminal.ends() == 0, terminal.seen
    assert config(ada)["bot_token"] == api.token
    assert api.token not in terminal.seen


async def test_telegram_can_wait(ada: Takopi, api: BotApi) -> None:
    async with open_terminal(ada, "init") as terminal:
        await terminal.answer(TOKEN_QUESTION, "\n")
        await terminal.answer(ENGINE_QUESTION, "\n")
        await terminal.answer(ALIAS_QUESTION, "\n")
        assert await terminal.ends() == 0, terminal.seen
    assert "z80" in config(ada)["projects"]
    assert "hint: takopi cannot run without bot_token and chat_id" in terminal.seen
    assert "systemd" not in terminal.seen


async def test_three_wrong_codes_end_the_set_up_and_let_nobody_in(ada: Takopi, api: BotApi) -> None:
    mallory = api.person(MALLORY, "Mallory")
    async with open_terminal(ada, "init") as terminal:
        await terminal.answer(TOKEN_QUESTION, f"{api.token}\n")
        code = await terminal.code()
        for _ in range(3):
            await mallory.send(mallory.chat, f"{(int(code) + 1) % 10**8:08}")
        assert await terminal.ends() == 1, terminal.seen
    assert "3 wrong codes came in" in terminal.seen
    assert "chat_id" not in config(ada)
    assert not api.sent("sendMessage")


async def test_code_of_a_killed_set_up_is_worth_nothing(ada: Takopi, api: BotApi) -> None:
    async with open_terminal(ada, "init") as terminal:
        await terminal.answer(TOKEN_QUESTION, f"{api.token}\n")
        old = await terminal.code()
        await terminal.kill()
    mallory = api.person(MALLORY, "Mallory")
    await mallory.send(mallory.chat, old)
    async with open_terminal(ada, "init") as terminal:
        await send_code(terminal, api)
        await terminal.asks(ENGINE_QUESTION)
        await terminal.kill()
    assert config(ada)["chat_id"] == ADA


async def test_token_that_is_typed_as_stdin_is_not_shown(ada: Takopi, api: BotApi) -> None:
    args = ["--token-file", "-", "--chat-id", str(ADA), "--no-project", "--engine", "pi"]
    async with open_terminal(ada, "init", *args, "--no-service") as terminal:
        await terminal.answer("bot token (not shown):", f"{api.token}\n")
        assert await terminal.ends() == 0, terminal.seen
    assert api.token not in terminal.seen
    assert config(ada)["bot_token"] == api.token


async def test_loose_modes_stop_the_set_up_before_any_question(ada: Takopi, api: BotApi) -> None:
    ada.home.chmod(0o755)
    async with open_terminal(ada, "init") as terminal:
        assert await terminal.ends() == 78
    assert f"chmod 700 {ada.home}" in terminal.seen
    assert not api.requests


async def test_repository_can_be_left_alone(ada: Takopi, api: BotApi) -> None:
    async with open_terminal(ada, "init", "--no-service") as terminal:
        await talk(terminal, api, [TOKEN_QUESTION, "Waiting", ENGINE_QUESTION])
        await terminal.answer(ALIAS_QUESTION, "-\n")
        assert await terminal.ends() == 0, terminal.seen
    assert "projects" not in config(ada)


async def test_folder_that_is_no_repository_is_not_asked_about(
    ada: Takopi, api: BotApi, tmp_path: Path
) -> None:
    ada.cwd = tmp_path
    async with open_terminal(ada, "init", "--no-service") as terminal:
        await talk(terminal, api, [TOKEN_QUESTION, "Waiting", ENGINE_QUESTION])
        assert await terminal.ends() == 0, terminal.seen
    assert "alias" not in terminal.seen
    assert "`takopi init` in one makes it a project" in terminal.seen


async def test_service_that_cannot_be_installed_is_an_error_only_if_it_was_demanded(
    ada: Takopi, api: BotApi
) -> None:
    systemctl = ada.tools / "systemctl"
    systemctl.write_text("#!/bin/sh\necho no bus >&2; exit 1\n", encoding="utf-8")
    async with open_terminal(ada, "init", "--no-project") as terminal:
        await talk(terminal, api, [TOKEN_QUESTION, "Waiting", ENGINE_QUESTION])
        await terminal.answer(SERVICE_QUESTION, "y\n")
        assert await terminal.ends() == 0, terminal.seen
    assert "hint: systemd does not serve you here: no bus" in terminal.seen
    assert "takopi is set up: run `takopi`" in terminal.seen

    outcome = await without_terminal(ada, "init", "--no-project", "--service")
    assert outcome.code == 2
    assert "systemd does not serve you here: no bus" in outcome.err


async def test_config_with_mistakes_is_not_set_up_but_takes_a_project(
    ada: Takopi, api: BotApi
) -> None:
    ada.write("session_mode = 'x'\n")
    async with open_terminal(ada, "init", "foo") as terminal:
        assert await terminal.ends() == 0, terminal.seen
    assert "`takopi config list` shows them" in terminal.seen
    assert "foo" in config(ada)["projects"]

    outcome = await without_terminal(ada, "init", "--no-project", "--engine", "pi")
    assert outcome.code == 78
    assert "session_mode" in outcome.err
    assert not api.requests
