"""A real systemd of a person, with a journal, in namespaces of its own: nothing of it is left."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import trio

from tests.cli.command import Outcome
from tests.e2e.rig import BIN

PROGRAMS = ("/lib/systemd/systemd", "/lib/systemd/systemd-journald", "unshare", "nsenter")
UNIT = "takopi.service"

# A cgroup of its own is the root of all that follows, and goes when nobody is left in it.
OUTER = """
set -eu
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 none /sys/fs/cgroup
own=/sys/fs/cgroup/takopi-test-$$
mkdir $own
echo $$ > $own/cgroup.procs
unshare --pid --cgroup --mount --fork --kill-child sh -c "$1" || true
echo $$ > /sys/fs/cgroup/cgroup.procs
find $own -depth -type d -exec rmdir {} +
"""
# systemd and its journal know whose a service is by the cgroup that it is in.
INNER = """
set -eu
read -r pid rest < /proc/self/stat
mount -t proc none /proc
umount /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
user=$(id -u)
export XDG_RUNTIME_DIR=/run/user/$user
mkdir -p /run/systemd /run/log/journal $XDG_RUNTIME_DIR
chmod 700 $XDG_RUNTIME_DIR
cd /run/systemd
mkdir system journald.conf.d user.conf.d
printf '[Journal]\\nReadKMsg=no\\nAudit=\\n' > journald.conf.d/test.conf
printf '[Manager]\\nLogTarget=journal\\n' > user.conf.d/test.conf
begin() {
    mkdir -p "/sys/fs/cgroup/$1"
    sh -c 'echo $$ > "/sys/fs/cgroup/$0/cgroup.procs"; exec "$@"' "$@" > /dev/null 2>&1 &
}
listens() {
    for attempt in $(seq 500); do [ -S "$1" ] && return || sleep 0.02; done
    echo "nobody listens at $1" >&2
    exit 1
}
begin system.slice/systemd-journald.service /lib/systemd/systemd-journald
listens journal/stdout
begin user.slice/user-$user.slice/user@$user.service /lib/systemd/systemd --user
listens $XDG_RUNTIME_DIR/systemd/private
timeout 30 systemctl --user is-system-running --wait > /dev/null || true
echo $pid
read -r _ || true
"""


@cache
def why_not() -> str | None:
    """Why no systemd can be had here; None if it can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"{missing[0]} is missing (on Debian: apt-get install systemd)"
    if os.getuid():
        return "only root may give a systemd namespaces and a cgroup of its own"
    # Without a home it has nothing to start: the person who runs the tests may have services.
    with _spawn({"PATH": os.environ["PATH"], "HOME": "/nonexistent"}) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        if process.stdout.readline():
            process.stdin.close()
            return None
        assert process.stderr is not None
        return f"no systemd can be started here: {process.stderr.read().decode().strip()}"


def _spawn(environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", OUTER, "sh", INNER],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@dataclass(frozen=True)
class SystemdUser:
    """The way into the namespaces: what is called there finds this systemd and no other."""

    pid: int
    environ: Mapping[str, str]
    cwd: Path

    async def __call__(self, *argv: str | Path) -> Outcome:
        """Run a program to its end."""
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--cgroup"]
        done = await trio.run_process(
            [*enter, f"--wd={self.cwd}", *argv],
            env=self.environ,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    async def takopi(self, *args: str) -> Outcome:
        return await self(BIN / "takopi", *args)

    async def systemctl(self, *args: str) -> Outcome:
        runtime = f"XDG_RUNTIME_DIR=/run/user/{os.getuid()}"
        return await self("env", runtime, "systemctl", "--user", *args)

    async def shows(self, name: str) -> str:
        """A property of the service."""
        done = await self.systemctl("show", "--value", f"--property={name}", UNIT)
        assert done.code == 0, done.err
        return done.out.strip()

    async def until_shown(self, name: str, value: str) -> None:
        """Until a property of the service has this value."""
        # systemctl can wait for a job, and a service that fails or starts again by itself is none.
        while True:
            if await self.shows(name) == value:
                return
            await trio.sleep(0.1)


@asynccontextmanager
async def open_systemd_user(
    environ: Mapping[str, str], cwd: Path
) -> AsyncGenerator[SystemdUser, None]:
    """A systemd that serves the person whose HOME is in this environment."""
    process = _spawn(environ)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = await trio.to_thread.run_sync(process.stdout.readline)
        assert line, process.stderr.read().decode()
        yield SystemdUser(int(line), environ, cwd)
    finally:
        # Its first process reads this to its end, and the kernel ends the others with it.
        process.stdin.close()
        process.wait()
        process.stdout.close()
        process.stderr.close()
