"""One daemon per bot and per home on this machine, for as long as the block lasts."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from takopi.core.errors import Unfit

PRIVATE = 0o600


@contextmanager
def hold(home: Path, bot_id: str | None) -> Generator[None, None, None]:
    """Hold the locks; `Unfit` names whoever has one. The system lets go of them at any death.

    The bot's lock lies outside the home, so that two homes cannot share a bot.
    """
    with ExitStack() as stack:
        stack.enter_context(_hold(home / "takopi.lock", f"the folder {home}"))
        if bot_id is not None:
            stack.enter_context(_hold(_bot_lock(bot_id), "this bot"))
        yield


def is_held(bot_id: str) -> bool:
    """Whether a takopi of this machine has this bot now. The lock is let go of at once."""
    try:
        lock = os.open(_bot_lock(bot_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _bot_lock(bot_id: str) -> Path:
    return _machine_folder() / f"takopi-bot-{bot_id}.lock"


def _machine_folder() -> Path:
    """A folder that all homes of this person have in common."""
    own = Path(f"/run/user/{os.getuid()}")
    return own if own.is_dir() else Path("/tmp")  # ruff: ignore[hardcoded-temp-file] it must be the same for all


@contextmanager
def _hold(path: Path, what: str) -> Generator[None, None, None]:
    taken = Unfit(f"another takopi is using {what}", way_out="stop it first; there can be only one")
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    except OSError as error:
        raise (
            taken
            if isinstance(error, PermissionError)
            else Unfit(f"{path} cannot be made: {error.strerror}")
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken from None
        yield
    finally:
        os.close(lock)
