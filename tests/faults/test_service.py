"""The service under a real systemd: started, killed, stuck, refused, stopped and taken away."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from takopi.config.token import VARIABLE
from tests.botapi.faults import Held
from tests.botapi.refusal import Refused
from tests.cli.command import Outcome
from tests.faults.rig import PATIENT, WITHIN_S, FaultRig
from tests.faults.systemd_user import SystemdUser, open_systemd_user, why_not
from tests.kit.processes import MARK

DRAIN_S = 1
HASTE = "[Service]\nWatchdogSec=4\nRestartSec=100ms\n"
"""What a person would have to wait for longer."""


@pytest.fixture
def needs_systemd() -> None:
    """Leaves a test out where there can be no systemd, unless one was said to be needed."""
    if (reason := why_not()) is not None:
        (pytest.fail if os.environ.get("TAKOPI_NEEDS_SYSTEMD") else pytest.skip)(reason)


@pytest.fixture
async def systemd(needs_systemd: None, rig: FaultRig) -> AsyncGenerator[SystemdUser, None]:
    """Ada's systemd, and a config that takopi could run with as its service."""
    configure(rig, rig.api.token)
    # Neither the token, nor the mark of what takopi starts, nor the way to another systemd.
    hidden = (VARIABLE, MARK, "XDG_", "DBUS_")
    environ = {k: v for k, v in rig.environ.items() if not k.startswith(hidden)}
    async with open_systemd_user(environ | {"SHELL": "/bin/sh"}, rig.cwd) as systemd:
        with trio.fail_after(WITHIN_S):
            yield systemd


def configure(rig: FaultRig, token: str) -> None:
    place = f'default_project = "z80"\nprojects.z80.path = "{rig.folder / "z80"}"\n'
    rig.configure(f'bot_token = "{token}"\n{PATIENT}{place}limits.drain_s = {DRAIN_S}\n')


def hasten(rig: FaultRig) -> None:
    folder = units(rig) / "takopi.service.d"
    folder.mkdir(parents=True)
    (folder / "haste.conf").write_text(HASTE, encoding="utf-8")


def units(rig: FaultRig) -> Path:
    return rig.folder / ".config/systemd/user"


async def begin_run(rig: FaultRig, name: str) -> None:
    """A run whose children do their best to survive it."""
    await rig.say(f"fork, stubborn, append starts.txt: {name} then hang")
    await rig.until_so(lambda: rig.starts[name] == 1, lambda: f"{name} did not start")
    assert rig.alive()


async def test_install_starts_it_and_stop_and_uninstall_leave_nothing(
    rig: FaultRig, systemd: SystemdUser
) -> None:
    rig.project("z80")
    held = Held()
    rig.api.fail(held, method="getMe", times=1)
    installed: list[Outcome] = []

    async def install() -> None:
        installed.append(await systemd.takopi("service", "install"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(install)
        await rig.api.wait_for_request(lambda r: r.method == "getMe", within_s=WITHIN_S)
        assert await systemd.shows("ActiveState") == "activating"
        assert not installed
        held.until.set()
    assert installed[0].code == 0, installed[0].err
    status = await systemd.takopi("service", "status")
    assert status.code == 0
    assert 'Status: "receiving"' in status.out
    assert (units(rig) / "default.target.wants/takopi.service").is_symlink()
    doctor = await systemd.takopi("doctor")
    assert "service   systemd runs takopi\n" in doctor.out

    await begin_run(rig, "one")
    stopped = await systemd.systemctl("stop", "takopi")
    assert stopped.code == 0, stopped.err
    assert rig.alive() == []
    # A stop that took longer than the unit allows would have ended in a kill, and be a failure.
    assert await systemd.shows("Result") == "success"
    assert await systemd.shows("ActiveState") == "inactive"
    assert (await systemd.takopi("service", "status")).code == 1
    logs = await systemd.takopi("service", "logs")
    assert " takopi[" in logs.out
    assert "daemon.draining" in logs.out
    assert rig.api.token.partition(":")[2] not in logs.out

    await uninstall(rig, systemd)


async def test_killed_or_stuck_daemon_is_started_again_and_nothing_of_its_runs_is_left(
    rig: FaultRig, systemd: SystemdUser
) -> None:
    rig.project("z80")
    hasten(rig)
    installed = await systemd.takopi("service", "install")
    assert installed.code == 0, installed.err

    for restarts, signal in enumerate(["KILL", "STOP"], 1):
        await begin_run(rig, signal)
        assert await systemd.shows("NRestarts") == str(restarts - 1)
        await systemd.systemctl("kill", "--kill-whom=main", f"--signal={signal}", "takopi")
        await systemd.until_shown("NRestarts", str(restarts))
        assert rig.alive() == []
        await rig.sees_text("interrupted", signal)

    logs = await systemd.takopi("service", "logs")
    print(logs.out, (await systemd("journalctl")).out)
    assert "Watchdog timeout" in logs.out
    assert "Fatal Python error: Aborted" in logs.out


async def test_config_that_cannot_be_used_is_not_tried_again(
    rig: FaultRig, systemd: SystemdUser
) -> None:
    rig.project("z80")
    hasten(rig)
    refused = rig.api.fail(Refused(401, "Unauthorized"), method="getMe", times=None)
    installed = await systemd.takopi("service", "install")
    assert installed.code == 2
    assert installed.err.endswith("\n  takopi service logs\n")
    await assert_it_stays_down(systemd, "Telegram does not know this bot")
    refused.end()

    configure(rig, "no token")
    assert (await systemd.systemctl("start", "takopi")).code == 1
    await assert_it_stays_down(systemd, "bot_token")
    await uninstall(rig, systemd)


async def assert_it_stays_down(systemd: SystemdUser, why: str) -> None:
    """While it waits to be started again it would be `activating`."""
    assert await systemd.shows("ActiveState") == "failed"
    assert await systemd.shows("ExecMainStatus") == "78"
    assert await systemd.shows("NRestarts") == "0"
    assert why in (await systemd.takopi("service", "logs")).out


async def uninstall(rig: FaultRig, systemd: SystemdUser) -> None:
    done = await systemd.takopi("service", "uninstall")
    assert done.code == 0, done.err
    listed = await systemd.systemctl("list-units", "--all", "--plain", "--no-legend", "takopi*")
    assert not listed.out
    assert not (units(rig) / "takopi.service").exists()
    assert not (units(rig) / "default.target.wants/takopi.service").is_symlink()
