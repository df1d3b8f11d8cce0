"""Where takopi keeps its things: one private folder, `~/.takopi` unless TAKOPI_HOME moves it."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from takopi.core.errors import Problem, Unfit

CONFIG_NAME = "takopi.toml"
PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class Home:
    """The folder, and the names of what lies in it."""

    folder: Path

    @property
    def config_file(self) -> Path:
        """What the person writes."""
        return self.folder / CONFIG_NAME

    @property
    def state_file(self) -> Path:
        """What takopi remembers."""
        return self.folder / "state.db"

    @property
    def spool(self) -> Path:
        """Files that are on their way."""
        return self.folder / "spool"

    @property
    def sessions(self) -> Path:
        """The interviews that are open."""
        return self.folder / "sessions"


def find_home(environ: Mapping[str, str]) -> Home:
    """The home that the environment names; it need not exist."""
    named = environ.get("TAKOPI_HOME", "")
    try:
        return Home(Path(named or "~/.takopi").expanduser().absolute())
    except RuntimeError as error:
        raise Unfit(
            "takopi cannot tell where your home folder is",
            way_out="set HOME, or set TAKOPI_HOME to an absolute path",
        ) from error


def make_home(home: Home) -> None:
    """Create the folder, for its owner alone. One that exists is left as it is."""
    try:
        home.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as error:
        raise Unfit(
            f"{home.folder} cannot be made: {error.strerror}",
            way_out="set TAKOPI_HOME to a folder that you may write to",
        ) from error


def mode_problem(path: Path, mode: int, *, key: str = "") -> Problem | None:
    """What is wrong with a mode that lets others in, and the command that mends it."""
    if not stat.S_IMODE(mode) & 0o077:
        return None
    wanted = PRIVATE_FOLDER if stat.S_ISDIR(mode) else PRIVATE_FILE
    return Problem(
        key,
        f"{path} may be read by others (mode {stat.S_IMODE(mode):04o})",
        f"chmod {wanted:o} {shlex.quote(str(path))}",
    )
