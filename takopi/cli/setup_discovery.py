"""Finds the engines' programs, also those that only a login shell has on its PATH."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import trio

from takopi.config.environ import child_environ
from takopi.core.errors import TakopiError
from takopi.kit.exchange import exchange, feed_bytes
from takopi.kit.proc import Command, open_keeper

SHELL_S = 10.0
"""How long a login shell may take: profiles that wait for a network do not end by themselves."""

GRACE_S = 1.0
MAX_BYTES = 1024 * 1024
"""How much of the end of what a shell prints is looked at."""


@dataclass(frozen=True, slots=True)
class Found:
    """An engine's program. `on_path` says that this shell finds it, too, not only a login shell."""

    engine: str
    program: Path
    on_path: bool


@dataclass(frozen=True, slots=True)
class Paths:
    """The PATH of this process, and one that has what a login shell adds to it behind.

    `told` is False if the login shell did not say its own.
    """

    own: str
    joined: str
    told: bool


async def find_paths(
    environ: Mapping[str, str], *, secret: str, within_s: float = SHELL_S
) -> Paths:
    """Both PATHs, as far as the login shell tells its own in time."""
    own = environ.get("PATH", os.defpath)
    told = await _ask_shell(environ, secret=secret, within_s=within_s)
    return Paths(own, join_paths(own, told or ""), told=told is not None)


def join_paths(first: str, second: str) -> str:
    """Every absolute folder of both, each once, those of the first in front."""
    folders = (folder for path in (first, second) for folder in path.split(os.pathsep))
    return os.pathsep.join(dict.fromkeys(one for one in folders if Path(one).is_absolute()))


def find_engines(commands: Mapping[str, str], paths: Paths) -> tuple[Found, ...]:
    """Which of the engines' programs are there, in the order of `commands`."""
    found: list[Found] = []
    for engine, command in commands.items():
        program = _which(command, paths.own)
        anywhere = program or _which(command, paths.joined)
        if anywhere is not None:
            found.append(Found(engine, anywhere, on_path=program is not None))
    return tuple(found)


def _which(command: str, path: str) -> Path | None:
    try:
        program = shutil.which(str(Path(command).expanduser()), path=path)
    except RuntimeError:
        return None
    return None if program is None else Path(program).absolute()


async def _ask_shell(environ: Mapping[str, str], *, secret: str, within_s: float) -> str | None:
    # Profiles print greetings, and may print what looks like an answer; none of them knows this.
    mark = secrets.token_hex(16)
    said = bytearray()

    async def read(stdout: trio.abc.ReceiveStream) -> None:
        async for chunk in stdout:
            said.extend(chunk)
            del said[:-MAX_BYTES]

    cwd = Path("/")
    command = Command(
        (_shell(environ), "-lc", f"printf '%s' '{mark}' \"$PATH\" '{mark}'"),
        cwd,
        child_environ(environ, secrets=(secret,), cwd=cwd, extra={}),
    )
    try:
        with trio.fail_after(within_s):
            async with open_keeper(on_lost=lambda: None) as keeper:
                await exchange(keeper, command, feed=feed_bytes(b""), read=read, grace_s=GRACE_S)
    except (TakopiError, trio.TooSlowError):
        return None
    parts = said.decode(errors="surrogateescape").split(mark)
    return parts[-2] if len(parts) >= 3 else None


def _shell(environ: Mapping[str, str]) -> str:
    if named := environ.get("SHELL"):
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"
