"""Runs git as a program: never a question on a terminal, never in another language.

The caller sets the deadline; a git that is cancelled is ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import trio

from takopi.core.errors import Refused, Unfit

# A takopi that was started by a hook or an alias of git must not work on that repository instead.
# The token is nobody's business.
_UNWANTED = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    "TAKOPI_BOT_TOKEN",
})

TERM_S = 2.0
"""How long a git that is ended has to take its lock files away."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """What one git command came to. `out` and `words` are without their last line breaks."""

    args: tuple[str, ...]
    code: int
    out: str
    words: str
    """What git said on stderr."""

    @property
    def ok(self) -> bool:
        """Whether git was content."""
        return self.code == 0

    def checked(self) -> str:
        """The output, or git's own words as an error."""
        if self.ok:
            return self.out
        lines = [line.removeprefix("fatal: ") for line in self.words.splitlines() if line.strip()]
        reason = " ".join(lines) or f"exit code {self.code}"
        raise Refused(f"git {self.args[0]} failed: {reason}")


@contextmanager
def git_deadline(seconds: float) -> Generator[None]:
    """Refuse, in words, what git has not done in time."""
    with trio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise Refused(
            f"git did not answer within {seconds:g} seconds",
            way_out="look for a git or a hook that hangs in the project, and try again",
        )


async def git(root: Path, *args: str, env: Mapping[str, str] | None = None) -> GitResult:
    """Run git in `root` to its end, whatever its exit code. `env` is added to its environment."""
    try:
        done = await trio.run_process(
            _argv(root, args),
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            deliver_cancel=_end_group,
            env=_environ(env),
            start_new_session=True,
        )
    except OSError as error:
        raise _cannot_start(error) from error
    return GitResult(
        args=args,
        code=done.returncode,
        # Paths are bytes that need not be UTF-8.
        out=os.fsdecode(done.stdout).rstrip("\n"),
        words=done.stderr.decode("utf-8", "replace").rstrip(),
    )


async def git_head(
    root: Path, *args: str, max_bytes: int, env: Mapping[str, str] | None = None
) -> tuple[bytes, bool]:
    """The first bytes that git says, and whether that is all; git is ended once it is enough."""
    # A file, so that git never waits for somebody to read its warnings.
    with TemporaryFile() as stderr:
        try:
            process = await trio.lowlevel.open_process(
                _argv(root, args),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=_environ(env),
                start_new_session=True,
            )
        except OSError as error:
            raise _cannot_start(error) from error
        # Trio cannot tell by the arguments that this is there.
        assert process.stdout is not None  # ruff: ignore[assert]
        out = bytearray()
        try:
            async for chunk in process.stdout:
                out += chunk
                if len(out) > max_bytes:
                    return bytes(out[:max_bytes]), False
            code = await process.wait()
        finally:
            with trio.move_on_after(TERM_S * 2, shield=True):
                if process.returncode is None:
                    await _end_group(process)
                    await process.wait()
                await process.stdout.aclose()
        stderr.seek(0)
        words = stderr.read().decode("utf-8", "replace").rstrip()
    GitResult(args, code, "", words).checked()
    return bytes(out), True


def _argv(root: Path, args: tuple[str, ...]) -> list[str]:
    return ["git", "-C", str(root), *args]


def _environ(more: Mapping[str, str] | None) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    # Looking at a repository must not get in the way of whoever works in it.
    environ |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return environ | dict(more or {})


async def _end_group(process: trio.Process) -> None:
    """End git with its children: a hook or a checkout must not go on where git was stopped."""
    _signal_group(process, signal.SIGTERM)
    with trio.move_on_after(TERM_S):
        await process.wait()
    _signal_group(process, signal.SIGKILL)


def _signal_group(process: trio.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _cannot_start(error: OSError) -> Unfit:
    return Unfit(
        f"git cannot be started: {error.strerror}",
        way_out="install it; on Debian: apt-get install git",
    )
