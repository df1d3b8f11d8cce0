"""What systemd hears of a daemon that receives, cannot, is stuck, and is stopped."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
import trio

from tests.botapi.faults import Held
from tests.botapi.refusal import too_many_requests
from tests.faults.rig import WITHIN_S, FaultRig

QUIET_S = 1.5
"""A watchdog that did not depend on the work would be heard of many times in this."""
WATCHDOG_USEC = 200_000


class Systemd:
    """What arrives at the socket, one fact at a time."""

    def __init__(self, heard: trio.socket.SocketType) -> None:
        self._heard = heard

    async def next(self) -> dict[str, str]:
        data = await self._heard.recv(4096)
        return dict(line.split("=", 1) for line in data.decode().splitlines())

    async def until(self, look: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """The next message that looks so."""
        with trio.fail_after(WITHIN_S):
            while True:
                if look(message := await self.next()):
                    return message

    async def is_quiet(self) -> bool:
        """Whether nothing comes for a while, once what came before is heard."""
        with trio.move_on_after(QUIET_S / 3):
            while True:
                await self.next()
        with trio.move_on_after(QUIET_S) as silence:
            await self.next()
        return silence.cancelled_caught


@pytest.fixture
async def systemd(rig: FaultRig, tmp_path: Path) -> AsyncGenerator[Systemd, None]:
    address = str(tmp_path / "notify")
    with trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        await heard.bind(address)
        variables = [f"NOTIFY_SOCKET={address}", f"WATCHDOG_USEC={WATCHDOG_USEC}"]
        rig.before = ["env", *variables]
        yield Systemd(heard)


def is_ready(message: dict[str, str]) -> bool:
    return "READY" in message


def is_alive(message: dict[str, str]) -> bool:
    return "WATCHDOG" in message


async def test_ready_is_told_after_the_first_attempt_to_receive_and_not_before(
    rig: FaultRig, systemd: Systemd
) -> None:
    held = Held()
    rig.api.fail(held, method="getMe", times=1)
    rig.launch()
    await rig.api.wait_for_request(lambda request: request.method == "getMe", within_s=WITHIN_S)
    with trio.move_on_after(QUIET_S / 3) as silence:
        await systemd.next()
    assert silence.cancelled_caught

    held.until.set()
    assert await systemd.until(is_ready) == {"READY": "1", "STATUS": "receiving"}


async def test_ready_is_told_also_when_the_first_attempt_failed(
    rig: FaultRig, systemd: Systemd
) -> None:
    await rig.api.go_down()
    rig.launch("--quick")

    told = await systemd.until(is_ready)
    assert told["STATUS"].startswith("cannot receive: no usable reply")
    rig.api.come_up()
    await systemd.until(lambda message: is_alive(message) and message["STATUS"] == "receiving")


async def test_every_attempt_to_receive_is_a_sign_of_life_whatever_comes_of_it(
    rig: FaultRig, systemd: Systemd
) -> None:
    await rig.start("--quick")
    await systemd.until(is_ready)
    for _ in range(2):
        await systemd.until(is_alive)

    await rig.api.go_down()
    for _ in range(2):
        await systemd.until(lambda message: is_alive(message) and "cannot" in message["STATUS"])


async def test_long_pause_that_the_server_asks_for_is_no_stuck_loop(
    rig: FaultRig, systemd: Systemd
) -> None:
    asked = rig.api.fail(too_many_requests(3600), method="getUpdates")
    rig.launch("--quick")
    await asked.struck(within_s=WITHIN_S)

    for _ in range(4):
        await systemd.until(lambda message: is_alive(message) and "retry" in message["STATUS"])


async def test_no_sign_of_life_comes_while_an_attempt_has_not_ended(
    rig: FaultRig, systemd: Systemd
) -> None:
    await rig.start()
    await systemd.until(is_ready)
    assert await systemd.is_quiet()

    await rig.say("hello")
    await systemd.until(is_alive)


async def test_no_sign_of_life_comes_from_a_daemon_that_is_stuck(
    rig: FaultRig, systemd: Systemd
) -> None:
    await rig.start("--quick")
    await systemd.until(is_alive)
    assert rig.process is not None
    stat = Path(f"/proc/{rig.process.pid}/stat")

    rig.send_signal(signal.SIGSTOP)
    await rig.until_so(lambda: stat.read_bytes().rpartition(b")")[2].split()[0] == b"T")
    assert await systemd.is_quiet()

    rig.send_signal(signal.SIGCONT)
    await systemd.until(is_alive)


async def test_stop_is_told_when_it_begins(rig: FaultRig, systemd: Systemd) -> None:
    await rig.start("--quick")
    await systemd.until(is_ready)
    await rig.progress(await rig.say("hang"))

    rig.send_signal()
    told = await systemd.until(lambda message: "STOPPING" in message)
    assert told == {"STOPPING": "1", "STATUS": "stopping, 1 running"}
    rig.send_signal()
    assert await rig.wait() == 0


async def test_page_alone_is_ready_when_it_listens_and_gives_signs_of_life(
    rig: FaultRig, systemd: Systemd
) -> None:
    rig.configure('transports = ["web"]\nweb.port = 0')
    rig.launch("--quick")

    assert await systemd.until(is_ready) == {"READY": "1", "STATUS": "the page is open"}
    for _ in range(3):
        await systemd.until(is_alive)
    rig.send_signal()
    await systemd.until(lambda message: "STOPPING" in message)


async def test_no_child_is_handed_the_way_to_systemd(rig: FaultRig, systemd: Systemd) -> None:
    root = rig.project("z80")
    seen = rig.folder / "seen-by-git"
    hook = root / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\nenv > {seen}\n", encoding="utf-8")
    hook.chmod(0o755)
    rig.configure(f'projects.z80.path = "{root}"')
    await rig.start("--quick")
    await systemd.until(is_ready)

    answer = await rig.answer("/z80 @fix run env")

    for environ in (answer.text, seen.read_text(encoding="utf-8")):
        assert "PATH=" in environ
        assert "NOTIFY_SOCKET" not in environ
        assert "WATCHDOG_USEC" not in environ
