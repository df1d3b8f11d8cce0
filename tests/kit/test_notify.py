from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

import pytest

from takopi.kit.notify import take_notifier


def listen(address: str) -> socket.socket:
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(address.replace("@", "\0", 1))
    heard.settimeout(20)
    return heard


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "abstract":
        return f"@takopi-test-{secrets.token_hex(8)}"
    return str(tmp_path / "notify")


def test_systemd_hears_every_word_at_its_address(address: str) -> None:
    notifier = take_notifier({"NOTIFY_SOCKET": address})
    with listen(address) as heard:
        notifier.ready("receiving")
        notifier.alive("cannot receive:\nno network")
        notifier.stopping("2 running")

        assert heard.recv(4096) == b"READY=1\nSTATUS=receiving"
        assert heard.recv(4096) == b"WATCHDOG=1\nSTATUS=cannot receive: no network"
        assert heard.recv(4096) == b"STOPPING=1\nSTATUS=2 running"


def test_what_nobody_could_hear_is_told_with_the_next_word(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    notifier = take_notifier({"NOTIFY_SOCKET": address})
    notifier.ready("receiving")
    with listen(address) as heard:
        notifier.alive("receiving")

        assert heard.recv(4096) == b"READY=1\nSTATUS=receiving\nWATCHDOG=1"


def test_full_queue_is_not_waited_for(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    notifier = take_notifier({"NOTIFY_SOCKET": address})
    with listen(address):
        for _ in range(10_000):
            notifier.alive("receiving")


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_without_systemd_nothing_is_told(environ: dict[str, str]) -> None:
    take_notifier(environ).ready("receiving")


def test_variables_are_taken_out_of_the_environment() -> None:
    environ = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2", "PATH": "/bin"}
    take_notifier(environ)
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("usec", "pid", "watchdog_s"),
    [
        ("180000000", "", 180.0),
        ("180000000", "own", 180.0),
        ("180000000", "1", None),
        ("0", "", None),
        ("soon", "", None),
    ],
)
def test_watchdog_is_ours_only_where_it_watches_us(
    usec: str, pid: str, watchdog_s: float | None
) -> None:
    environ = {"WATCHDOG_USEC": usec, "WATCHDOG_PID": str(os.getpid()) if pid == "own" else pid}
    assert take_notifier(environ).watchdog_s == watchdog_s
