"""What one check of `takopi doctor` came to, and how programs are asked for it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from takopi.config.environ import child_environ
from takopi.config.loaded import Config
from takopi.config.paths import Home
from takopi.core.errors import CannotStart

if TYPE_CHECKING:
    import trio

    from takopi.engines.catalog import Catalog
    from takopi.kit.proc import Keeper

Level = Literal["ok", "warning", "error"]

GRACE_S = 1.0
MAX_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `way_out` is the command that mends it, or what to do by hand."""

    check: str
    level: Level
    what: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Patient:
    """What is looked at. Without a config that can be read, what depends on it is left out."""

    home: Home
    environ: Mapping[str, str]
    config: Config | None
    catalog: Catalog
    keeper: Keeper

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no child may see, and nobody is shown."""
        return (self.config.bot_token,) if self.config and self.config.bot_token else ()

    def child_environ(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a program of the person gets to see, as under the daemon."""
        folder = Path("/")
        return child_environ(self.environ, secrets=self.secrets, cwd=folder, extra=extra or {})

    def finds(self, program: str) -> bool:
        """Whether the daemon would find the program, if it had this PATH."""
        return shutil.which(program, path=self.environ.get("PATH")) is not None


async def ask(
    patient: Patient, argv: list[str], *, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The exit code of a program and what it said; nothing is left of it after a deadline."""
    from takopi.kit.exchange import exchange, feed_bytes
    from takopi.kit.proc import Command

    said = bytearray()

    async def read(stdout: trio.abc.ReceiveStream) -> None:
        async for chunk in stdout:
            said.extend(chunk[: MAX_BYTES - len(said)])

    command = Command(argv, Path("/"), env or patient.child_environ())
    ending = await exchange(
        patient.keeper, command, feed=feed_bytes(b""), read=read, grace_s=GRACE_S
    )
    return ending.code, (bytes(said) + ending.stderr).decode(errors="replace")


async def ask_version(
    patient: Patient, argv: list[str], *, env: Mapping[str, str] | None = None
) -> tuple[int, ...] | None:
    """The first version number that a program tells; None if it cannot be started or tells none."""
    try:
        _, said = await ask(patient, argv, env=env)
    except CannotStart:
        return None
    found = re.search(r"\d+(?:\.\d+)+", said)
    return tuple(map(int, found[0].split("."))) if found else None


def dotted(version: tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))
