"""The checks of `takopi doctor` on this machine: its programs, its disk, its service."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import trio

from takopi.cli import service
from takopi.cli.doctor_finding import Finding, Patient, ask_version, dotted
from takopi.cli.service_unit import unit_file, unit_text
from takopi.core.errors import TakopiError
from takopi.present.numbers import size
from takopi.store.opening import look_into
from takopi.store.schema import STEPS

OLDEST_GIT = (2, 20)
"""The first with every option of `git worktree` that is used."""

FULL_BYTES = 50_000_000
LITTLE_BYTES = 500_000_000
FEW_FILES = 1000
BUSY_S = 5.0


async def check_git(patient: Patient) -> list[Finding]:
    """Whether git is there, and new enough for worktrees."""
    version = await ask_version(patient, ["git", "--version"])
    install = "on Debian: apt-get install git"
    if version is None:
        return [Finding("git", "error", "git is not installed", install)]
    if version < OLDEST_GIT:
        what = f"git {dotted(version)} is too old, takopi needs {dotted(OLDEST_GIT)} or newer"
        return [Finding("git", "error", what, install)]
    return [Finding("git", "ok", f"git {dotted(version)}")]


async def check_disk(patient: Patient) -> list[Finding]:
    """Whether there is room for what takopi must write before it confirms anything."""
    folder = patient.home.folder
    while not folder.exists():
        folder = folder.parent
    status = await trio.to_thread.run_sync(os.statvfs, folder, abandon_on_cancel=True)
    # Some filesystems count no files, and then have none left.
    files = status.f_favail if status.f_files else None
    return [judge_disk(folder, free_bytes=status.f_bavail * status.f_frsize, free_files=files)]


def judge_disk(folder: Path, *, free_bytes: int, free_files: int | None) -> Finding:
    """What so much room means."""
    way_out = f"see what takes it: du -xh {shlex.quote(str(folder))} | sort -h | tail"
    if free_bytes < FULL_BYTES:
        what = f"the disk is full: {size(free_bytes)} free in {folder}"
        return Finding("disk", "error", what, way_out)
    if free_files is not None and free_files < FEW_FILES:
        what = f"the disk takes only {free_files} more files in {folder}"
        return Finding("disk", "error", what, way_out)
    if free_bytes < LITTLE_BYTES:
        return Finding("disk", "warning", f"only {size(free_bytes)} free in {folder}", way_out)
    return Finding("disk", "ok", f"{size(free_bytes)} free in {folder}")


async def check_state(patient: Patient) -> list[Finding]:
    """Whether what takopi remembers can be read by this takopi."""
    path = patient.home.state_file
    if not path.exists():
        return [Finding("state", "ok", "nothing has run yet")]

    def look() -> None:
        with look_into(path, known=len(STEPS), busy_s=BUSY_S):
            pass

    try:
        await trio.to_thread.run_sync(look, abandon_on_cancel=True)
    except TakopiError as error:
        return [Finding("state", "error", error.what, error.way_out)]
    return [Finding("state", "ok", f"{path}, {size(path.stat().st_size)}")]


async def check_service(patient: Patient) -> list[Finding]:
    """Whether systemd runs takopi, as this takopi would have it."""
    return await trio.to_thread.run_sync(_judge_service, patient, abandon_on_cancel=True)


def _judge_service(patient: Patient) -> list[Finding]:
    file = unit_file(patient.environ)
    if not file.exists():
        return [Finding("service", "ok", "not installed; `takopi service install` would do it")]
    if shutil.which("systemctl") is None:
        what = f"{file} is there, but no systemd"
        return [Finding("service", "warning", what, f"rm {shlex.quote(str(file))}")]
    found: list[Finding] = []
    if patient.config is not None:
        wanted = unit_text(patient.home, path="", limits=patient.config.limits)
        if set(_but_path(wanted)) != set(_but_path(file.read_text("utf-8", errors="replace"))):
            what = f"{file} is not as this takopi and its config would have it"
            found.append(Finding("service", "warning", what, "takopi service install"))
    found += _judge_state(service.state())
    return found or [Finding("service", "ok", "systemd runs takopi")]


def _judge_state(state: str) -> list[Finding]:
    match state:
        case "active":
            if service.lingers() is not False:
                return []
            what, way_out = "systemd ends it when you log out", "loginctl enable-linger"
        case "failed":
            what, way_out = "it failed, and systemd does not start it again", "takopi service logs"
        case "activating":
            what, way_out = "it starts, or has just failed to", "takopi service logs"
        case "":
            what = "systemd does not serve you here, so nobody can say whether it runs"
            way_out = "log in as yourself, not with su or sudo"
        case _:
            what = "installed, and does not run"
            way_out = f"systemctl --user enable --now {service.UNIT}"
    return [Finding("service", "warning", what, way_out)]


def _but_path(unit: str) -> Iterator[str]:
    return (line for line in unit.splitlines() if not line.startswith('Environment="PATH='))


async def check_tmux(patient: Patient) -> list[Finding]:
    """Whether prompts can be sent to a terminal."""
    version = await ask_version(patient, ["tmux", "-V"])
    if version is None:
        return [Finding("tmux", "ok", "not installed; only /attach needs it")]
    return [Finding("tmux", "ok", f"tmux {dotted(version)}")]


async def check_voice(patient: Patient) -> list[Finding]:
    """Whether voice notes can be written down in the way that the config names."""
    await trio.lowlevel.checkpoint()
    if patient.config is None:
        return []
    voice = patient.config.voice
    if voice.command:
        program = voice.command[0]
        if patient.finds(program):
            return [Finding("voice", "ok", f"written down by {program}")]
        what = f"the program {program} of voice.command is not there"
        return [Finding("voice", "error", what, "takopi config set voice.command '[…]'")]
    if voice.base_url is None:
        return [Finding("voice", "ok", "off: neither voice.base_url nor voice.command is set")]
    key = voice.api_key_file
    if key is not None and not os.access(key, os.R_OK):
        what = f"voice.api_key_file {key} cannot be read"
        return [Finding("voice", "error", what, "takopi config set voice.api_key_file FILE")]
    return [Finding("voice", "ok", f"written down by {voice.base_url}")]


async def check_projects(patient: Patient) -> list[Finding]:
    """Whether the folders of the projects are there."""
    await trio.lowlevel.checkpoint()
    if patient.config is None:
        return []
    projects = patient.config.projects.values()
    lost = [
        Finding(
            "projects",
            "error",
            f"the folder {project.path} of {project.alias} is not there",
            f"takopi config set projects.{project.alias}.path FOLDER",
        )
        for project in projects
        if not project.path.is_dir()
    ]
    none = Finding("projects", "ok", "none; `takopi init ALIAS` in a folder registers it")
    named = Finding("projects", "ok", ", ".join(project.alias for project in projects))
    return lost or [named if projects else none]
