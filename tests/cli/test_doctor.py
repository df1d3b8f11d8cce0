from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio

from takopi.app.lock import hold
from takopi.cli.doctor import run_checks
from takopi.cli.doctor_engines import check_engines
from takopi.cli.doctor_finding import Finding, Patient
from takopi.cli.doctor_machine import check_tmux, judge_disk
from takopi.cli.doctor_telegram import judge_clock
from takopi.config.paths import Home
from takopi.engines.catalog import load_catalog
from takopi.kit.proc import open_keeper
from tests.botapi.api import BotApi
from tests.botapi.bot import open_bot
from tests.botapi.server import serve_botapi
from tests.botapi.updates import OTHER_POLLER
from tests.cli.command import BIN, Outcome, Takopi
from tests.e2e.rig import ADA, new_token, open_rig
from tests.kit.processes import alive_with, new_mark
from tests.store.test_full_disk import OWN_MOUNTS, may_mount

WEB = 'transports = ["web"]\n'


def program(takopi: Takopi, name: str, text: str) -> None:
    file = takopi.tools / name
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)


def findings(outcome: Outcome) -> dict[str, dict[str, Any]]:
    """The worst finding of each check."""
    order = ["ok", "warning", "error"]
    rows = json.loads(outcome.out)["findings"]
    return {row["check"]: row for row in sorted(rows, key=lambda row: order.index(row["level"]))}


@pytest.fixture
async def api() -> AsyncGenerator[BotApi, None]:
    async with serve_botapi(token=new_token()) as api:
        api.person(ADA)
        yield api


@pytest.fixture
def ada(takopi: Takopi) -> Takopi:
    """Somebody with an engine and the page alone: nothing of hers needs a network."""
    program(takopi, "claude", "echo 2.1.326")
    takopi.write(WEB)
    return takopi


def use_telegram(ada: Takopi, api: BotApi, more: str = "") -> None:
    ada.write(f'bot_token = "{api.token}"\nchat_id = {ADA}\napi_url = "{api.url}"\n{more}')


async def examine(ada: Takopi) -> Outcome:
    return await trio.to_thread.run_sync(partial(ada, "doctor", "--json"))


async def test_healthy_machine_has_nothing_to_mend_and_loses_nothing(
    ada: Takopi, api: BotApi
) -> None:
    use_telegram(ada, api)
    await api.person(ADA).send(api.person(ADA).chat, "waits for takopi")
    outcome = await examine(ada)
    found = findings(outcome)

    # How full the disk of this machine is, no test can know.
    assert {row["level"] for check, row in found.items() if check != "disk"} == {"ok"}
    assert found["token"]["what"] == "it is the one of @takopi_bot"
    assert found["claude"]["what"] == "claude 2.1.326, logged in"
    assert found["receiver"]["what"] == "messages wait; nobody seems to receive them"
    assert len(api.updates.unconfirmed) == 1
    assert api.token not in outcome.out + outcome.err


async def test_silence_while_nothing_waits_says_that_nobody_else_receives(
    ada: Takopi, api: BotApi
) -> None:
    use_telegram(ada, api)
    receiver = findings(await examine(ada))["receiver"]
    assert (receiver["level"], receiver["what"]) == (
        "ok",
        "nobody else receives this bot's messages",
    )


async def test_takopi_that_has_the_home_but_not_the_bot_is_not_said_to_receive(
    ada: Takopi, api: BotApi
) -> None:
    use_telegram(ada, api)
    with hold(ada.home, None):
        receiver = findings(await examine(ada))["receiver"]
    assert receiver["what"] == "nobody else receives this bot's messages"


async def test_bad_token_is_found(ada: Takopi, api: BotApi) -> None:
    api.expect_rejection("Unauthorized")
    use_telegram(ada, api)
    text = ada.config_file.read_text(encoding="utf-8")
    bad = api.token.replace(":AA", ":BB")
    ada.write(text.replace(api.token, bad))
    outcome = await examine(ada)

    assert outcome.code == 2
    token = findings(outcome)["token"]
    assert token["level"] == "error"
    assert "takopi config set bot_token" in token["way_out"]
    assert bad not in outcome.out + outcome.err


async def test_missing_network_is_found(ada: Takopi, api: BotApi) -> None:
    use_telegram(ada, api)
    await api.go_down()
    outcome = await examine(ada)

    assert outcome.code == 2
    telegram = findings(outcome)["telegram"]
    assert telegram["what"] == f"{api.url} gives no answer: no usable reply (ConnectError)"
    assert telegram["way_out"].endswith(f"curl --head {api.url}")
    assert api.token not in outcome.out + outcome.err


async def test_second_receiver_is_found(ada: Takopi, api: BotApi) -> None:
    api.expect_rejection(OTHER_POLLER)
    use_telegram(ada, api)
    async with open_bot(api) as other, trio.open_nursery() as nursery:

        async def receive() -> None:
            while True:
                await other.client.post("getUpdates", json={"timeout": 50})

        nursery.start_soon(receive)
        await api.wait_for_request(lambda request: request.method == "getUpdates")
        outcome = await examine(ada)
        nursery.cancel_scope.cancel()

    assert outcome.code == 2
    receiver = findings(outcome)["receiver"]
    assert "another program receives this bot's messages" in receiver["what"]
    assert "stop the other one" in receiver["way_out"]
    assert "takopi config set bot_token" in receiver["way_out"]


async def test_running_takopi_is_not_disturbed(ada: Takopi, api: BotApi, tmp_path: Path) -> None:
    (tmp_path / "rig").mkdir()
    async with open_rig(api, tmp_path / "rig") as rig:
        await rig.start()
        ada.environ |= {"TAKOPI_HOME": str(rig.home), "TAKOPI_BOT_TOKEN": api.token}
        outcome = await examine(ada)
        assert await rig.answer("hello")

    assert findings(outcome)["receiver"]["what"] == "takopi is running, and receives"
    assert findings(outcome)["state"]["level"] == "ok"


async def test_missing_config_is_found(ada: Takopi) -> None:
    ada.config_file.unlink()
    outcome = await examine(ada)
    assert outcome.code == 2
    assert findings(outcome)["config"]["way_out"] == "takopi init"


async def test_every_mistake_of_the_config_is_found(ada: Takopi) -> None:
    ada.write(f"{WEB}limits.max_runs = 0\nbogus = 1\n")
    lines = [row["what"] for row in json.loads((await examine(ada)).out)["findings"]]
    assert any(line.startswith("limits.max_runs: ") for line in lines)
    assert any(line.startswith("bogus: ") for line in lines)


async def test_loose_modes_are_found(ada: Takopi) -> None:
    ada.config_file.chmod(0o644)
    config = findings(await examine(ada))["config"]
    assert config["way_out"] == f"chmod 600 {ada.config_file}"


async def test_missing_engine_is_found(ada: Takopi) -> None:
    ada.write(f'{WEB}default_engine = "codex"\n')
    codex = findings(await examine(ada))["codex"]
    assert (codex["level"], codex["what"]) == ("error", "codex is not installed")
    assert codex["way_out"] == "npm install -g @openai/codex"


async def test_machine_without_any_engine_is_found(ada: Takopi) -> None:
    (ada.tools / "claude").unlink()
    engines = findings(await examine(ada))["engines"]
    assert engines["level"] == "error"
    assert engines["what"].startswith("no engine is installed")


@pytest.mark.parametrize(
    ("named", "level"), [("default_engine = 'claude'\n", "error"), ("", "warning")]
)
async def test_old_engine_is_found(ada: Takopi, named: str, level: str) -> None:
    ada.write(WEB + named)
    program(ada, "claude", "echo 1.9.9")
    claude = findings(await examine(ada))["claude"]
    assert claude["level"] == level
    assert "1.9.9 is too old, takopi needs 2.0.0" in claude["what"]


async def test_engine_without_a_login_is_found(ada: Takopi) -> None:
    program(ada, "claude", '[ "$1" = auth ] && exit 1; echo 2.1.326')
    program(ada, "codex", '[ "$*" = "login status" ] && exit 1; echo codex-cli 0.169.0')
    outcome = await examine(ada)
    found = findings(outcome)
    assert outcome.code == 1
    assert (found["claude"]["level"], found["claude"]["way_out"]) == (
        "warning",
        "claude auth login",
    )
    assert (found["codex"]["what"], found["codex"]["way_out"]) == (
        "codex 0.169.0 is not logged in",
        "codex login",
    )


async def check_each(ada: Takopi, within_s: float) -> dict[str, tuple[str, str]]:
    with trio.fail_after(60):
        async with open_keeper(on_lost=lambda: None) as keeper:
            catalog = load_catalog(ada.home)
            patient = Patient(Home(ada.home), ada.environ, None, catalog, keeper)
            found = await check_engines(patient, within_s=within_s)
    return {each.check: (each.level, each.what) for each in found}


async def test_engine_that_hangs_does_not_hide_the_others(ada: Takopi) -> None:
    (ada.tools / "claude").unlink()
    program(ada, "codex", "sleep 1000")
    found = await check_each(ada, 1.0)
    assert found["codex"] == ("warning", "codex gave no answer within 1 seconds")
    assert found["engines"][1].startswith("not installed, and not asked for: claude, ")


async def test_engine_that_fails_does_not_hide_the_others(ada: Takopi) -> None:
    # It is gone when it is asked for its login.
    program(ada, "claude", 'rm "$0"; echo 2.1.326')
    program(ada, "pi", "echo 1.2.3")
    found = await check_each(ada, 50.0)
    assert found["claude"] == ("warning", "cannot start claude: No such file or directory")
    assert found["pi"] == ("ok", "pi 1.2.3")


async def test_engine_that_knows_no_such_question_is_not_asked_for_its_login(ada: Takopi) -> None:
    program(ada, "claude", f'[ "$1" = auth ] && touch {ada.folder}/asked; echo 2.0.1')
    assert findings(await examine(ada))["claude"]["what"] == "claude 2.0.1"
    assert not (ada.folder / "asked").exists()


@pytest.mark.parametrize("text", ["echo git version 2.11.0", "exit 127"])
async def test_old_or_broken_git_is_found(ada: Takopi, text: str) -> None:
    program(ada, "git", text)
    git = findings(await examine(ada))["git"]
    assert git["level"] == "error"
    assert git["way_out"] == "on Debian: apt-get install git"


def test_full_disk_is_found(ada: Takopi) -> None:
    if not may_mount(ada.folder):
        pytest.skip("mounting is not allowed here; the rule by itself stands for it")
    mount = 'mount -t tmpfs -o size=2m,mode=700 tmpfs "$0" && exec "$@"'
    done = subprocess.run(
        [*OWN_MOUNTS, "sh", "-c", mount, ada.home, BIN / "takopi", "doctor"],
        env=ada.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    found = re.search(r"error +disk +the disk is full: .*\n +(.*)\n", done.stdout)
    assert found is not None, done.stdout
    assert found[1] == f"see what takes it: du -xh {ada.home} | sort -h | tail"


@pytest.mark.parametrize(
    ("free_bytes", "free_files", "level"),
    [
        (0, None, "error"),
        (49_999_999, None, "error"),
        (50_000_000, 10**6, "warning"),
        (10**12, 999, "error"),
        (10**12, None, "ok"),
    ],
)
def test_room_on_the_disk_is_judged(free_bytes: int, free_files: int | None, level: str) -> None:
    found = judge_disk(Path("/x"), free_bytes=free_bytes, free_files=free_files)
    assert found.level == level


async def test_lost_project_and_missing_voice_program_are_found(ada: Takopi) -> None:
    ada.write(f'{WEB}projects.z80.path = "/nowhere"\nvoice.command = ["hear", "{{file}}"]\n')
    found = findings(await examine(ada))
    assert found["projects"]["way_out"] == "takopi config set projects.z80.path FOLDER"
    assert found["voice"]["what"] == "the program hear of voice.command is not there"


async def test_state_of_a_newer_takopi_is_found(ada: Takopi) -> None:
    (ada.home / "state.db").write_bytes(b"not a database" * 100)
    assert "is damaged" in findings(await examine(ada))["state"]["what"]


async def test_service_that_is_stopped_or_out_of_date_is_found(ada: Takopi) -> None:
    program(ada, "systemctl", 'case "$*" in *is-active*) echo active;; esac')
    program(ada, "loginctl", "echo yes")
    assert ada("service", "install").code == 0
    assert findings(await examine(ada))["service"]["what"] == "systemd runs takopi"

    program(ada, "loginctl", "echo no")
    assert findings(await examine(ada))["service"]["way_out"] == "loginctl enable-linger"

    for state, way_out in (
        ("inactive", "systemctl --user enable --now takopi.service"),
        ("failed", "takopi service logs"),
        ("activating", "takopi service logs"),
        ("", "log in as yourself, not with su or sudo"),
    ):
        program(ada, "systemctl", f'case "$*" in *is-active*) echo {state}; exit 3;; esac')
        assert findings(await examine(ada))["service"]["way_out"] == way_out

    program(ada, "systemctl", 'case "$*" in *is-active*) echo active;; esac')
    program(ada, "loginctl", "echo yes")
    ada.write(f"{WEB}limits.grace_s = 60\n")
    assert findings(await examine(ada))["service"]["way_out"] == "takopi service install"


@contextmanager
def telling_the_time(ahead_s: float) -> Generator[str]:
    """A server whose clock is off, and that knows every bot."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            me = {"id": 1, "username": "takopi_bot"}
            result: object = me if self.path.endswith("getMe") else []
            body = json.dumps({"ok": True, "result": result}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate((timestamp or time.time()) + ahead_s, usegmt=True)

        def log_message(self, format: str, *args: object) -> None:  # ruff: ignore[builtin-argument-shadowing] its name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_clock_that_is_wrong_is_found(ada: Takopi) -> None:
    token = new_token()
    with telling_the_time(7200) as url:
        ada.write(f'bot_token = "{token}"\nchat_id = 5\napi_url = "{url}"\n')
        clock = findings(ada("doctor", "--json"))["clock"]
    assert clock["level"] == "warning"
    assert re.fullmatch(r"this machine's clock is 7\d\d\d s slow", clock["what"])
    assert clock["way_out"] == "timedatectl set-ntp true"


@pytest.mark.parametrize("date", ["", "yesterday", "Wed, 99 Foo"])
def test_server_that_tells_no_time_says_nothing_about_the_clock(date: str) -> None:
    assert judge_clock(date, now_s=0) == []


async def test_check_that_hangs_is_ended_and_told_while_the_others_go_on(ada: Takopi) -> None:
    mark = new_mark()
    program(ada, "tmux", "sleep 1000")
    catalog = load_catalog(ada.home)

    async def quick(_patient: Patient) -> list[Finding]:
        await trio.lowlevel.checkpoint()
        return [Finding("quick", "ok", "done")]

    with trio.fail_after(60):
        async with open_keeper(on_lost=lambda: None) as keeper:
            environ = ada.environ | {"TEST_MARK": mark}
            patient = Patient(Home(ada.home), environ, None, catalog, keeper)
            found = await run_checks(
                [("tmux", check_tmux), ("quick", quick)], patient, within_s=1.0
            )

    assert [(each.check, each.level) for each in found] == [("tmux", "error"), ("quick", "ok")]
    assert found[0].what == "the check did not end within 1 seconds"
    assert alive_with("TEST_MARK", mark) == []


def test_token_is_not_shown_wherever_it_stands(ada: Takopi) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        token = new_token()
        ada.write(
            f'bot_token = "{token}"\nchat_id = 5\napi_url = "{url}"\n'
            f'projects.z80.path = "/nowhere/{token}"\n'
        )
        outcome = ada("doctor")
    assert outcome.code == 2
    assert "/nowhere/[hidden]" in outcome.out
    assert token not in outcome.out + outcome.err


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_is_used_on_a_terminal_unless_it_is_unwanted(
    ada: Takopi, no_color: str, coloured: bool
) -> None:
    ada.environ["NO_COLOR"] = no_color
    said = ada.on_terminal("doctor", answers=[]).out
    assert "config" in said
    assert ("\x1b[" in said) is coloured
