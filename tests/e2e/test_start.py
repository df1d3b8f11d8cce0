from __future__ import annotations

from pathlib import Path

import pytest

from tests.botapi.api import BotApi
from tests.botapi.refusal import Refused
from tests.e2e.rig import Rig, open_rig

UNFIT_CONFIG = 78
ENVIRONMENT = 2


@pytest.fixture(autouse=True)
def cold(rig: Rig) -> None:
    """Started in the ordinary way: it is the start that these tests are about."""
    rig.is_warm = False


async def test_bad_config_ends_with_code_78_and_every_problem(rig: Rig) -> None:
    rig.configure(
        'default_project = "nowhere"\nsesion_mode = "chat"\n[limits]\nmax_runs = 0\n'
        "[projects.status]\npath = '/tmp'"
    )

    rig.launch()

    assert await rig.wait() == UNFIT_CONFIG
    lines = rig.log.splitlines()
    assert lines[0] == "error: the config has 4 problems"
    for key in ("default_project", "sesion_mode", "limits.max_runs", "projects.status"):
        assert any(line.strip().startswith(key) for line in lines), rig.log
    assert "Traceback" not in rig.log


async def test_missing_token_ends_with_code_78(rig: Rig) -> None:
    rig.launch(without="TAKOPI_BOT_TOKEN")

    assert await rig.wait() == UNFIT_CONFIG
    assert "bot_token" in rig.log
    assert "Traceback" not in rig.log


async def test_token_that_telegram_does_not_know_ends_with_code_78(rig: Rig) -> None:
    rig.api.fail(Refused(401, "Unauthorized"), times=None)

    rig.launch()

    assert await rig.wait() == UNFIT_CONFIG
    assert "error: " in rig.log
    assert "Traceback" not in rig.log
    assert rig.api.token not in rig.log
    assert rig.alive() == []


async def test_token_that_is_revoked_while_it_runs_ends_with_code_78(rig: Rig) -> None:
    await rig.start()

    rig.api.fail(Refused(401, "Unauthorized"), times=None)

    assert await rig.wait() == UNFIT_CONFIG
    assert rig.api.token not in rig.log


async def test_second_daemon_of_the_same_home_is_refused(rig: Rig) -> None:
    await rig.start()
    first, rig.process = rig.process, None

    rig.launch()

    assert await rig.wait() == ENVIRONMENT
    assert "error: another takopi is using the folder" in rig.log
    assert "Traceback" not in rig.log
    rig.process = first
    await rig.answer("say: the first goes on")


async def test_second_daemon_of_the_same_bot_is_refused_though_it_has_another_home(
    rig: Rig, api: BotApi, tmp_path: Path
) -> None:
    await rig.start()
    (tmp_path / "other").mkdir()
    async with open_rig(api, tmp_path / "other") as other:
        other.launch()

        assert await other.wait() == ENVIRONMENT
        assert "error: another takopi is using this bot" in other.log
        assert "Traceback" not in other.log
    await rig.answer("say: the first goes on")


async def test_lock_is_free_after_kill_9(rig: Rig) -> None:
    import signal

    await rig.start()
    await rig.stop(signal.SIGKILL)

    await rig.start()

    await rig.answer("hello")


async def test_menu_names_commands_engines_and_projects(rig: Rig) -> None:
    rig.configure(f'[projects.z80]\npath = "{rig.project("z80")}"')
    await rig.start()

    sent = await rig.api.wait_for_request(lambda r: r.method == "setMyCommands")

    names = [command["command"] for command in sent.parameters["commands"]]
    assert {"help", "status", "cancel", "worktrees", "demo", "z80"} <= set(names)
    assert "start" not in names
