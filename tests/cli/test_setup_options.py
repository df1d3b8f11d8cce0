"""The set-up with nobody to ask: every answer is an option, and what lacks one is an error."""

from __future__ import annotations

import re
import stat
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
from tests.cli.setup_terminal import CODE, WITHIN_S, config, without_terminal
from tests.e2e.rig import ADA

GROUP = -1001234567890


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


async def test_token_file_that_others_can_read_is_mentioned(ada: Takopi, api: BotApi) -> None:
    file = ada.folder / "token"
    file.write_text(f"{api.token}\n", encoding="utf-8")
    file.chmod(0o644)
    args = ["--token-file", str(file), "--chat-id", str(ADA), "--no-project"]
    outcome = await without_terminal(ada, "init", *args)
    assert outcome.code == 0, outcome.err
    assert f"chmod 600 {file}" in outcome.err
    assert config(ada)["bot_token"] == api.token


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
