"""Runs git as a program: never a question on a terminal, never in another language.

The caller sets the deadline; a git that is cancelled is ended.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

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


async def git(root: Path, *args: str) -> GitResult:
    """Run git in `root` to its end, whatever its exit code."""
    environ = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    environ |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = await trio.run_process(
            ["git", "-C", str(root), *args],
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env=environ,
        )
    except OSError as error:
        raise Unfit(
            f"git cannot be started: {error.strerror}",
            way_out="install it; on Debian: apt-get install git",
        ) from error
    return GitResult(
        args=args,
        code=done.returncode,
        # Paths are bytes that need not be UTF-8.
        out=os.fsdecode(done.stdout).rstrip("\n"),
        words=done.stderr.decode("utf-8", "replace").rstrip(),
    )
