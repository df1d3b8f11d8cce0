"""Lets one takopi at a time work on a session: a second one is told so, and changes nothing.

The lock is on the session's folder itself. So nothing is left behind that somebody would commit,
and it ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager

from takopi.core.errors import Refused
from takopi.turns.layout import Session


@contextmanager
def hold(session: Session) -> Generator[None]:
    """Have a session alone; `Refused` if somebody else has it."""
    fd = os.open(session.folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"somebody is at work on {session.name} already",
                way_out="wait until that has ended: session status",
            ) from None
        yield
    finally:
        os.close(fd)


def is_held(session: Session) -> bool:
    """Whether somebody is at work on a session now."""
    try:
        with hold(session):
            return False
    except Refused:
        return True
