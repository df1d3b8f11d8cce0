"""The whole set-up, on a terminal and without one, with a Bot API on loopback."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import AsyncGenerator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import trio

from takopi.app.lock import hold
from tests.botapi.api import BotApi
from tests.botapi.faults import Closed
from tests.botapi.refusal import Refused
from tests.cli.command import BIN, Takopi
from tests.cli.setup_terminal import (
    CODE,
    WITHIN_S,
    Terminal,
    open_botapi,
    open_terminal,
    without_terminal,
)
from tests.e2e.rig import ADA
from tests.projects.repos import make_repo

ABORTED = 4
GROUP = -1001234567890
MALLORY = 6666
TOKEN_QUESTION = "bot token (not shown; Enter for not now):"
ENGINE_QUESTION = "default engine: claude, pi [claude]:"
ALIAS_QUESTION = "alias of this project [z80]:"
SERVICE_QUESTION = "Let systemd run takopi, also after a restart of this machine? [y/N]:"


@pytest.fixture
async def api() -> AsyncGenerator[BotApi, None]:
    async with open_botapi() as api:
        yield api


@pytest.fixture
def ada(takopi: Takopi, api: BotApi) -> Takopi:
    """Somebody with a repository, two engines and a systemctl, who knows another Bot API."""
    takopi.environ["SHELL"] = "/bin/sh"
    takopi.cwd = make_repo(takopi.folder / "dev/z80")
    for name in ("claude", "pi", "systemctl"):
        takopi.install(name)
    takopi.write(f'api_url = "{api.url}"\n')
    return takopi


def config(takopi: Takopi) -> dict[str, Any]:
    return tomllib.loads(takopi.config_file.read_text(encoding="utf-8"))


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


async def test_home_and_config_are_for_their_owner_alone(ada: Takopi, api: BotApi) -> None:
    ada.config_file.unlink()
    ada.home.rmdir()
    args = ["--api-url", api.url, "--token-file", "-", "--chat-id", str(ADA), "--no-project"]
    outcome = await without_terminal(ada, "init", *args, stdin=api.token)
    assert outcome.code == 0, outcome.err
    assert stat.S_IMODE(ada.home.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in ada.home.iterdir()} == {
        "takopi.toml": 0o600
    }


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


async def test_engine_of_the_login_shell_is_kept_with_its_place_and_path(
    ada: Takopi, api: BotApi
) -> None:
    for name in ("claude", "pi"):
        (ada.tools / name).unlink()
    place = ada.folder / "tools"
    place.mkdir()
    (ada.tools / "systemctl").rename(place / "codex")
    (ada.folder / ".profile").write_text('echo hello; PATH="$HOME/tools:$PATH"\n', encoding="utf-8")
    args = ["--token-file", "-", "--chat-id", str(ADA), "--no-project"]
    outcome = await without_terminal(ada, "init", *args, stdin=api.token)
    assert outcome.code == 0, outcome.err
    said = config(ada)
    assert said["default_engine"] == "codex"
    assert said["codex"]["command"] == str(place / "codex")
    assert str(place) in said["codex"]["env"]["PATH"].split(":")


async def test_without_an_engine_the_set_up_ends_well_and_says_so(ada: Takopi, api: BotApi) -> None:
    for name in ("claude", "pi"):
        (ada.tools / name).unlink()
    args = ["z80", "--token-file", "-", "--chat-id", str(ADA)]
    outcome = await without_terminal(ada, "init", *args, stdin=api.token)
    assert outcome.code == 0
    assert outcome.err.count("none of claude, codex, opencode, pi is installed yet") == 1
    assert "the demo engine answers" in outcome.err
    assert "default_engine" not in config(ada)


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


@pytest.mark.parametrize(
    ("trouble", "code", "words"),
    [
        (Closed(), 2, "Telegram cannot be reached"),
        (Refused(429, "slow", parameters={"retry_after": 7}), 2, "left alone for 7 s"),
        (Refused(401, "Unauthorized"), 78, "does not know a bot with this token"),
    ],
    ids=["network", "429", "401"],
)
async def test_trouble_with_the_token_is_one_sentence_and_nothing_is_kept(
    ada: Takopi, api: BotApi, trouble: Any, code: int, words: str
) -> None:
    before = config(ada)
    api.fail(trouble, times=None)
    args = ["--token-file", "-", "--chat-id", str(ADA), "--no-project"]
    outcome = await without_terminal(ada, "init", *args, stdin=api.token)
    assert outcome.code == code
    assert words in outcome.err
    assert "Traceback" not in outcome.err
    assert api.token not in outcome.out + outcome.err
    assert config(ada) == before


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


async def test_pairing_works_without_a_terminal_on_demand(ada: Takopi, api: BotApi) -> None:
    # A pipe to somebody who reads it, as over ssh without a terminal.
    args = ["init", "--token-file", "-", "--pair", "--no-project", "--engine", "pi"]
    person = api.person(ADA)
    said = b""
    with trio.fail_after(WITHIN_S):
        process = await trio.lowlevel.open_process(
            [str(BIN / "takopi"), *args], env=ada.environ, stdin=PIPE, stdout=PIPE
        )
        assert process.stdin
        assert process.stdout
        await process.stdin.send_all(api.token.encode())
        await process.stdin.aclose()
        async for chunk in process.stdout:
            said += chunk
            if b"Waiting" in chunk:
                await person.send(person.chat, CODE.findall(said.decode())[-1])
        assert await process.wait() == 0
    assert config(ada)["chat_id"] == ADA
    assert api.token.encode() not in said


async def test_pairing_is_refused_while_a_takopi_runs_with_this_bot(
    ada: Takopi, api: BotApi, tmp_path: Path
) -> None:
    args = ["init", "--token-file", "-", "--pair", "--no-project", "--engine", "pi"]
    with hold(tmp_path, api.token.partition(":")[0]):
        outcome = await without_terminal(ada, *args, stdin=api.token)
    assert outcome.code == 2
    assert "another takopi is using this bot" in outcome.err
    assert not api.sent("getUpdates")


async def test_missing_answers_are_one_error_that_names_the_options(ada: Takopi) -> None:
    before = config(ada)
    outcome = await without_terminal(ada, "init", "--engine", "pi")
    assert outcome.code == 1
    assert outcome.err == (
        "error: the token and the chat and the project cannot be asked for without a terminal\n"
        "  add --token-file FILE (- is stdin) or --token-env NAME; --chat-id ID or --pair;"
        " its ALIAS or --no-project\n"
    )
    assert config(ada) == before


async def test_every_answer_can_be_an_option(ada: Takopi, api: BotApi) -> None:
    ada.environ |= {"MY_TOKEN": api.token, "TAKOPI_BOT_TOKEN": ""}
    args = ["--token-env", "MY_TOKEN", "--chat-id", str(ADA), "--engine", "demo", "--no-service"]
    outcome = await without_terminal(ada, "init", "foo", "--default", *args)
    assert outcome.code == 0, outcome.err
    assert config(ada)["bot_token"] == api.token
    assert config(ada)["default_engine"] == "demo"
    assert config(ada)["default_project"] == "foo"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--token-file", "-", "--token-env", "X"], "there is one token"),
        (["--token-env", "NOT_THERE", "--chat-id", "5"], "the variable NOT_THERE is not set"),
        (["--token-file", "gone", "--chat-id", "5"], "gone cannot be read"),
        (["--token-file", "-", "--chat-id", "5"], "what came in is no bot token"),
        (["--engine", "gpt"], "there is no engine gpt"),
        (["--pair", "--chat-id", "5"], "there is one chat"),
        (["--token-file", "-", "--chat-id", str(GROUP)], "add --allow USER_ID"),
        (["foo"], "contradict each other"),
    ],
)
async def test_options_that_cannot_be_are_refused(ada: Takopi, args: list[str], words: str) -> None:
    before = config(ada)
    outcome = await without_terminal(ada, "init", "--no-project", *args)
    assert outcome.code == 1
    assert words in outcome.err
    assert config(ada) == before


async def test_options_of_telegram_are_refused_where_only_the_page_is_wanted(
    takopi: Takopi,
) -> None:
    takopi.write('transports = ["web"]\n')
    outcome = await without_terminal(takopi, "init", "--chat-id", "5", "--no-project")
    assert outcome.code == 1
    assert outcome.err == (
        "error: Telegram is not among the transports of the config\n"
        """  takopi config set transports '["telegram", "web"]'\n"""
    )


@pytest.mark.parametrize("option", [[], ["--token-file"], ["--token-env"]])
async def test_token_on_the_command_line_is_refused_and_not_repeated(
    ada: Takopi, api: BotApi, option: list[str]
) -> None:
    outcome = await without_terminal(ada, "init", *option, api.token)
    assert outcome.code == 1
    assert "must not stand on the command line" in outcome.err
    assert api.token not in outcome.err


async def test_group_is_taken_with_those_who_may_use_it(ada: Takopi, api: BotApi) -> None:
    args = ["--token-file", "-", "--chat-id", str(GROUP), "--allow", "7", "--allow", str(ADA)]
    outcome = await without_terminal(ada, "init", "--no-project", *args, stdin=api.token)
    assert outcome.code == 0, outcome.err
    assert config(ada)["chat_id"] == GROUP
    assert config(ada)["allowed_user_ids"] == [7, ADA]


async def test_paired_takopi_is_not_paired_again_without_notice(ada: Takopi, api: BotApi) -> None:
    ada.write(f'bot_token = "{api.token}"\nchat_id = {ADA}\n')
    outcome = await without_terminal(ada, "init", "--pair", "--no-project")
    assert outcome.code == 1
    assert f"paired with chat {ADA} already" in outcome.err


async def test_token_of_the_environment_that_is_another_one_is_named(
    ada: Takopi, api: BotApi
) -> None:
    ada.environ["TAKOPI_BOT_TOKEN"] = "1:another"
    args = ["--token-file", "-", "--chat-id", "5", "--no-project"]
    outcome = await without_terminal(ada, "init", *args, stdin=api.token)
    assert outcome.code == 1
    assert "TAKOPI_BOT_TOKEN names another bot" in outcome.err


async def test_token_that_is_typed_as_stdin_is_not_shown(ada: Takopi, api: BotApi) -> None:
    args = ["--token-file", "-", "--chat-id", str(ADA), "--no-project", "--engine", "pi"]
    async with open_terminal(ada, "init", *args, "--no-service") as terminal:
        await terminal.answer("bot token (not shown):", f"{api.token}\n")
        assert await terminal.ends() == 0, terminal.seen
    assert api.token not in terminal.seen
    assert config(ada)["bot_token"] == api.token


async def test_token_file_that_others_can_read_is_mentioned(ada: Takopi, api: BotApi) -> None:
    file = ada.folder / "token"
    file.write_text(f"{api.token}\n", encoding="utf-8")
    file.chmod(0o644)
    args = ["--token-file", str(file), "--chat-id", str(ADA), "--no-project"]
    outcome = await without_terminal(ada, "init", *args)
    assert outcome.code == 0, outcome.err
    assert f"chmod 600 {file}" in outcome.err
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


async def test_service_is_installed_on_demand_with_the_path_of_the_login_shell(
    ada: Takopi, api: BotApi
) -> None:
    (ada.folder / "tools").mkdir()
    (ada.folder / ".profile").write_text('PATH="$HOME/tools:$PATH"\n', encoding="utf-8")
    args = ["--token-file", "-", "--chat-id", str(ADA), "--no-project", "--service"]
    outcome = await without_terminal(ada, "init", *args, stdin=api.token)
    assert outcome.code == 0, outcome.err
    unit = (ada.folder / ".config/systemd/user/takopi.service").read_text(encoding="utf-8")
    (path,) = re.findall(r'Environment="PATH=(.*)"', unit)
    assert str(ada.folder / "tools") in path.split(":")
    assert api.token not in unit
    assert f"takopi is set up: write to @{api.bot.username}" in outcome.out


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
