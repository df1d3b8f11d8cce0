from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from takopi.cli.service import STOP_S
from takopi.cli.service_unit import unit_text
from takopi.config.limits import Limits
from takopi.config.paths import Home
from takopi.core.errors import Refused
from tests.cli.command import BIN, Takopi

TOKEN = "123456789:AAcanary-token-of-the-service-tests"
CONFIG = f'bot_token = "{TOKEN}"\nchat_id = 5\nlimits.drain_s = 33.5\n'

ANALYZE = shutil.which("systemd-analyze")
if ANALYZE is None and os.environ.get("TAKOPI_NEEDS_SYSTEMD"):
    raise RuntimeError("systemd-analyze is missing, and these tests were to use it")


def program(takopi: Takopi, name: str, text: str) -> None:
    """A program that notes how it was called, and does what the text says."""
    file = takopi.tools / name
    calls = takopi.folder / "calls"
    file.write_text(f'#!/bin/sh\necho {name} "$@" >> {calls}\n{text}\n', encoding="utf-8")
    file.chmod(0o755)


def calls(takopi: Takopi) -> list[str]:
    return (takopi.folder / "calls").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def ada(takopi: Takopi) -> Takopi:
    """Somebody with a config, and stand-ins for systemd's programs."""
    takopi.write(CONFIG)
    takopi.environ["SHELL"] = "/bin/sh"
    profile = f'PATH="{takopi.environ["PATH"]}:/from/the/profile"\n'
    (takopi.folder / ".profile").write_text(profile, encoding="utf-8")
    program(takopi, "systemctl", 'case "$*" in *is-active*) echo inactive; exit 3;; esac')
    program(takopi, "loginctl", "echo no")
    return takopi


def unit_of(takopi: Takopi) -> Path:
    return takopi.folder / ".config/systemd/user/takopi.service"


def test_install_writes_the_unit_and_starts_it(ada: Takopi) -> None:
    done = ada("service", "install")

    assert done.code == 0, done.err
    unit = unit_of(ada).read_text(encoding="utf-8").splitlines()
    wanted = {
        "Type=notify",
        # The colon keeps systemd from replacing what looks like a variable.
        f'ExecStart=":{BIN / "python"}" -X faulthandler -m takopi --verbose',
        f'Environment="TAKOPI_HOME={ada.home}"',
        f'Environment="PATH={ada.environ["PATH"]}:/from/the/profile"',
        "UMask=0077",
        "WatchdogSec=180",
        "TimeoutStopSec=44",
        "KillMode=mixed",
        "OOMPolicy=continue",
        "Restart=always",
        "RestartPreventExitStatus=78",
    }
    assert wanted <= set(unit)
    assert calls(ada)[-4:-1] == [
        "systemctl --user daemon-reload",
        "systemctl --user enable takopi.service",
        "systemctl --user start takopi.service",
    ]
    assert "loginctl enable-linger" in done.err


def test_install_can_leave_the_start_to_the_person(ada: Takopi) -> None:
    done = ada("service", "install", "--no-enable")
    assert "systemctl --user enable --now takopi.service" in done.out
    assert not any("enable" in call or "start" in call for call in calls(ada))


def test_lingering_person_is_not_told_of_it(ada: Takopi) -> None:
    program(ada, "loginctl", "echo yes")
    assert "linger" not in ada("service", "install").err


def test_running_service_is_not_interrupted_by_an_install(ada: Takopi) -> None:
    program(ada, "systemctl", 'case "$*" in *is-active*) echo active;; esac')
    done = ada("service", "install")
    assert "systemctl --user restart takopi.service" in done.err
    assert not any("restart" in call for call in calls(ada))
    assert "restart" not in ada("service", "install").err


def test_token_is_not_in_the_unit_and_must_be_in_the_config(ada: Takopi) -> None:
    assert TOKEN not in ada("service", "print").out
    ada.write("chat_id = 5\n")
    refused = ada("service", "install", environ={"TAKOPI_BOT_TOKEN": TOKEN})
    assert refused.code == 78
    assert "bot_token" in refused.err
    assert not unit_of(ada).exists()


def test_service_of_another_home_is_not_overwritten(ada: Takopi) -> None:
    ada("service", "install")
    before = unit_of(ada).read_bytes()
    other = ada.folder / "other"
    shutil.copytree(ada.home, other)
    other.chmod(0o700)
    refused = ada("service", "install", environ={"TAKOPI_HOME": str(other)})
    assert refused.code == 1
    assert str(ada.home) in refused.err
    assert unit_of(ada).read_bytes() == before


def test_service_of_another_home_is_not_taken_away(ada: Takopi) -> None:
    ada("service", "install")
    before = len(calls(ada))
    refused = ada("service", "uninstall", environ={"TAKOPI_HOME": str(ada.folder / "other")})
    assert refused.code == 1
    assert str(ada.home) in refused.err
    assert unit_of(ada).exists()
    assert len(calls(ada)) == before


def test_unit_that_names_no_home_can_be_taken_away(ada: Takopi) -> None:
    unit_of(ada).parent.mkdir(parents=True)
    unit_of(ada).touch()
    assert ada("service", "uninstall").code == 0
    assert not unit_of(ada).exists()


def test_unit_lies_where_xdg_says(ada: Takopi) -> None:
    ada("service", "install", environ={"XDG_CONFIG_HOME": str(ada.folder / "xdg")})
    assert (ada.folder / "xdg/systemd/user/takopi.service").is_file()


def test_uninstall_stops_it_and_takes_the_unit_away(ada: Takopi) -> None:
    ada("service", "install")
    done = ada("service", "uninstall")
    assert done.code == 0, done.err
    assert not unit_of(ada).exists()
    assert ada.config_file.exists()
    assert calls(ada)[-4:] == [
        "systemctl --user stop takopi.service",
        "systemctl --user disable takopi.service",
        "systemctl --user reset-failed takopi.service",
        "systemctl --user daemon-reload",
    ]


@pytest.mark.parametrize("command", ["uninstall", "status", "logs"])
def test_what_is_not_installed_is_said_to_be_not(ada: Takopi, command: str) -> None:
    refused = ada("service", command)
    assert refused.code == 1
    assert refused.err.endswith("not installed as a service\n  takopi service install\n")


def test_status_and_logs_are_systemds_own_words(ada: Takopi) -> None:
    ada("service", "install")
    program(ada, "journalctl", "echo a line")
    assert ada("service", "logs", "-n", "7").out == "a line\n"
    assert "journalctl --user-unit takopi.service --lines 7 --no-pager" in calls(ada)
    program(ada, "systemctl", "echo running")
    assert ada("service", "status").out == "running\n"
    program(ada, "systemctl", 'case "$*" in *status*) echo dead; exit 3;; esac')
    dead = ada("service", "status")
    assert (dead.code, dead.out) == (1, "dead\n")


def test_logs_are_followed_until_the_person_has_seen_enough(ada: Takopi) -> None:
    ada("service", "install")
    program(ada, "journalctl", "echo a line; exec sleep 1000")
    left = ada.on_terminal("service", "logs", "--follow", answers=[("a line", "\x03")])
    assert left.code == 4
    assert any(call.endswith("--lines 50 --follow") for call in calls(ada))


@pytest.mark.parametrize("verb", ["daemon-reload", "enable", "start"])
def test_failure_of_systemd_is_told_in_its_words(ada: Takopi, verb: str) -> None:
    program(ada, "systemctl", f'case "$*" in *{verb}*) echo it is broken >&2; exit 1;; esac')
    failed = ada("service", "install")
    assert failed.code == 2
    assert f"error: systemctl {verb} failed: it is broken" in failed.err


def test_failed_start_is_not_told_in_the_words_of_the_enabling(ada: Takopi) -> None:
    words = 'case "$*" in *enable*) echo Created symlink >&2;; *start*) echo no >&2; exit 1;; esac'
    program(ada, "systemctl", words)
    assert "error: systemctl start failed: no\n" in ada("service", "install").err


@pytest.mark.parametrize("command", ["install", "status", "logs", "uninstall"])
def test_programs_of_systemd_do_not_see_the_token(ada: Takopi, command: str) -> None:
    ada("service", "install")
    seen = ada.folder / "environ"
    for name in ("systemctl", "journalctl", "loginctl"):
        program(ada, name, f"env >> {seen}")
    ada("service", command, environ={"TAKOPI_BOT_TOKEN": TOKEN, "COPY": TOKEN})
    assert "PATH=" in seen.read_text(encoding="utf-8")
    assert TOKEN not in seen.read_text(encoding="utf-8")


@pytest.mark.parametrize("served", [True, False])
def test_journal_is_told_where_the_pages_token_is_and_not_the_token(
    takopi: Takopi, served: bool
) -> None:
    takopi.write('transports = ["web"]\nweb.port = 0\n')
    environ = takopi.environ | ({"NOTIFY_SOCKET": f"{takopi.folder}/notify"} if served else {})
    with subprocess.Popen(
        [BIN / "takopi"], cwd=takopi.cwd, env=environ, stdout=subprocess.PIPE, text=True
    ) as daemon:
        try:
            assert daemon.stdout is not None
            said = daemon.stdout.readline()
        finally:
            daemon.terminate()
    file = takopi.home / "web-token"
    token = file.read_text(encoding="utf-8")
    if served:
        assert re.fullmatch(r"takopi is at http://127\.0\.0\.1:\d+/\?token=.*\n", said)
        assert said.endswith(f"/?token=TOKEN, and the TOKEN is in {file}\n")
        assert token not in said
    else:
        assert said.endswith(f"/?token={token}\n")


def test_without_systemd_the_other_ways_are_named(ada: Takopi) -> None:
    (ada.tools / "systemctl").unlink()
    refused = ada("service", "install", environ={"PATH": str(ada.tools)})
    assert refused.code == 2
    assert "there is no systemd on this machine" in refused.err
    assert "tmux new-session -d takopi" in refused.err
    assert not unit_of(ada).exists()


def test_systemd_that_does_not_serve_the_person_is_told(ada: Takopi) -> None:
    program(ada, "systemctl", "echo Failed to connect to bus >&2; exit 1")
    refused = ada("service", "install")
    assert refused.code == 2
    assert "systemd does not serve you here: Failed to connect to bus" in refused.err
    assert not unit_of(ada).exists()


def test_unit_is_printed_before_there_is_a_config(takopi: Takopi) -> None:
    done = takopi("service", "print")
    assert done.code == 0
    assert "TimeoutStopSec=30" in done.out
    assert not takopi.home.exists()


def test_path_of_a_unit_has_absolute_folders_once_each() -> None:
    text = unit_text(Home(Path("/h")), path="/a:b::/c:/a:.", limits=Limits())
    assert 'Environment="PATH=/a:/c"' in text


@pytest.mark.parametrize(
    ("drain_s", "grace_s", "stop_s"), [(20, 2, 30), (20, 0, 30), (33.5, 2, 44), (600, 60, 726)]
)
def test_stop_has_time_to_drain_and_to_end_what_is_left(
    drain_s: float, grace_s: float, stop_s: int
) -> None:
    limits = Limits(drain_s=drain_s, grace_s=grace_s)
    text = unit_text(Home(Path("/h")), path="/a", limits=limits)
    assert f"TimeoutStopSec={stop_s}\n" in text
    assert stop_s < STOP_S


def test_percent_sign_is_not_taken_for_a_specifier() -> None:
    text = unit_text(Home(Path("/50%n")), path="/a%h", limits=Limits())
    assert 'Environment="TAKOPI_HOME=/50%%n"' in text
    assert 'Environment="PATH=/a%%h"' in text


@pytest.mark.parametrize("name", ["line\nbreak", "caf\udce9", "bell\a"])
def test_folder_that_no_unit_can_name_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="systemd cannot be told of"):
        unit_text(Home(Path("/h", name)), path="/bin", limits=Limits())


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", ["plain", "a b", "100%", "$HOME", "${x}y", 'say "hi"', "back\\"])
def test_systemd_accepts_the_unit_and_understands_its_paths(tmp_path: Path, name: str) -> None:
    assert ANALYZE is not None
    folder = tmp_path / name
    folder.mkdir()
    unit = tmp_path / "takopi.service"
    unit.write_text(unit_text(Home(folder), path=f"/usr/bin:{folder}", limits=Limits()), "utf-8")

    done = subprocess.run(
        [ANALYZE, "verify", unit], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", ["a b", "%n", "$HOME", "${x}y"])
def test_systemd_accepts_a_python_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert ANALYZE is not None
    python = tmp_path / name / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    unit = tmp_path / "takopi.service"
    unit.write_text(unit_text(Home(tmp_path), path="/usr/bin", limits=Limits()), "utf-8")

    done = subprocess.run(
        [ANALYZE, "verify", unit], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ['"', "'", "\\"])
def test_python_that_systemd_would_not_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / name / "python"))
    with pytest.raises(Refused, match="quotes or backslashes"):
        unit_text(Home(tmp_path), path="/usr/bin", limits=Limits())
