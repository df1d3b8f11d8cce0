"""Types a prompt into a tmux window as it stands: literally, into that window or into none.

tmux is called with argument lists and the text goes in on stdin, so no shell ever reads it. A
window is named by its id and by its server's start, because ids begin again with a new server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from takopi.config.environ import child_environ
from takopi.core.errors import CannotStart, Refused, TakopiError, Unfit, Unreachable
from takopi.kit.exchange import exchange, feed_bytes
from takopi.kit.proc import Command, Keeper
from takopi.kit.supervise import Backoff

ANSWER_S = 10.0
"""How long tmux may take for one command."""

ENTER_S = 0.3
"""Between the paste and Enter: a program that reads both at once takes Enter for part of it."""

MAX_OUTPUT_BYTES = 1024 * 1024
SHELLS = frozenset({"sh", "bash", "zsh", "fish", "dash", "ksh", "tcsh", "csh", "nu", "pwsh"})
BUFFER = "takopi"

_FIELDS = (
    "#{pid}.#{start_time}", "#{window_id}", "#{session_name}:#{window_index}", "#{pane_active}",
    "#{pane_in_mode}", "#{pane_pid}", "#{pane_current_command}", "#{window_name}",
)  # fmt: skip
_NO_SERVER = ("no server running", "error connecting", "server exited", "lost server")
_TARGET = re.compile(r"tmux (\d+\.\d+) (@\d+) (.+)")
# What a terminal would obey, an end of the paste among them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Target:
    """A window. `label` is what it was called when it was bound: it may be called otherwise now."""

    server: str
    window: str
    label: str

    def __str__(self) -> str:
        return f"tmux {self.server} {self.window} {self.label}"


@dataclass(frozen=True, slots=True)
class Window:
    """A window as it is now; `runs` is the program in its active pane."""

    target: Target
    name: str
    runs: str
    in_mode: bool
    pids: tuple[int, ...]


def read_target(text: str | None) -> Target | None:
    """The window that a scope is bound to; None for one that is bound to none."""
    found = _TARGET.fullmatch(text or "")
    return None if found is None else Target(found[1], found[2], found[3])


class WindowGone(Refused):
    """The window is not there any more."""


@dataclass(frozen=True, slots=True)
class Tmux:
    """The tmux server of this machine's user, or the one of the `socket` that is named."""

    keeper: Keeper
    environ: Mapping[str, str]
    socket: Callable[[], str | None]
    secrets: tuple[str, ...] = ()

    async def windows(self) -> tuple[Window, ...]:
        """Every window of every session; none where no server runs."""
        code, out, said = await self._call("list-panes", "-a", "-F", "\t".join(_FIELDS))
        if code != 0:
            if any(words in said for words in _NO_SERVER):
                return ()
            raise Unreachable(f"tmux: {said}", maybe_applied=False)
        return _windows(out)

    async def find(self, target: Target) -> Window:
        """The window as it is now; `WindowGone` where it is not."""
        for window in await self.windows():
            known = window.target
            if (known.server, known.window) == (target.server, target.window):
                return window
        raise WindowGone(f"the tmux window {target.label} is gone")

    async def named(self, words: str) -> Window:
        """The window that a person means by `session` or `session:window`."""
        session, colon, wanted = words.partition(":")
        windows = await self.windows()
        mine = [window for window in windows if window.target.label.rpartition(":")[0] == session]
        if colon:
            mine = [
                window
                for window in mine
                if wanted in {window.target.label.rpartition(":")[2], window.name}
            ]
        if len(mine) == 1:
            return mine[0]
        if mine:
            names = ", ".join(f"`{window.target.label}`" for window in mine[:10])
            raise Refused(f"{words} has several windows", way_out=f"name one of {names}")
        raise Refused(f"there is no tmux window {words}", way_out="`/attach` shows those there are")

    async def type_in(self, target: Target, text: str) -> None:
        """Paste the text and press Enter. Refused, with nothing typed, where a shell would run it.

        Characters that a terminal obeys are left out, but for line ends and tabs.
        """
        window = await self.find(target)
        if window.runs in SHELLS:
            raise Refused(
                f"{window.runs} is what runs in {target.label}, and a prompt is no command",
                way_out="start an agent there, and press Run again",
            )
        to = ("-t", target.window)
        literal = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
        buffer = f"{BUFFER}-{os.getpid()}-{target.window[1:]}"
        await self._do("load-buffer", "-b", buffer, "-", stdin=literal.encode(errors="replace"))
        if window.in_mode:
            await self._do("send-keys", *to, "-X", "cancel")
        await self._do("paste-buffer", "-d", "-p", "-b", buffer, *to)
        await trio.sleep(ENTER_S)
        await self._do("send-keys", *to, "Enter")

    async def screen(self, target: Target) -> str:
        """What the window shows now."""
        await self.find(target)
        return await self._do("capture-pane", "-p", "-t", target.window)

    async def wait_gone(self, target: Target) -> None:
        """Return when the window is no longer there."""
        backoff = Backoff(first_s=0.1, cap_s=10.0)
        while True:
            try:
                window = await self.find(target)
            except WindowGone:
                return
            except TakopiError:
                # tmux itself is in trouble: that says nothing of the window.
                await trio.sleep(backoff.pause_s())
                continue
            if await _wait_for_any(window.pids):
                backoff.reset()
            # tmux learns of a dead pane a moment later than we do, and may keep it open.
            await trio.sleep(backoff.pause_s())

    async def _do(self, *args: str, stdin: bytes = b"") -> str:
        code, out, said = await self._call(*args, stdin=stdin)
        if code != 0:
            raise Unreachable(f"tmux: {said}", maybe_applied=True)
        return out

    async def _call(self, *args: str, stdin: bytes = b"") -> tuple[int, str, str]:
        out = bytearray()

        async def read(stdout: trio.abc.ReceiveStream) -> None:
            async for chunk in stdout:
                out.extend(chunk[: MAX_OUTPUT_BYTES - len(out)])

        socket, home = self.socket(), Path("/")
        argv = ["tmux", "-u", *(("-L", socket) if socket else ()), *args]
        env = child_environ(self.environ, secrets=self.secrets, cwd=home, extra={})
        # Inside tmux, tmux would speak to the server it was started from.
        env.pop("TMUX", None)
        try:
            with trio.fail_after(ANSWER_S):
                ending = await exchange(
                    self.keeper,
                    Command(argv, home, env),
                    feed=feed_bytes(stdin),
                    read=read,
                    grace_s=1.0,
                )
        except CannotStart as error:
            raise Unfit(error.what, way_out="install tmux") from error
        except trio.TooSlowError:
            raise Unreachable("tmux did not answer", maybe_applied=True) from None
        said = " ".join(ending.stderr.decode(errors="replace").split())
        return ending.code, out.decode(errors="replace"), said or f"code {ending.code}"


def _windows(listing: str) -> tuple[Window, ...]:
    found: dict[tuple[str, str], Window] = {}
    for line in listing.splitlines():
        parts = line.split("\t", len(_FIELDS) - 1)
        if len(parts) != len(_FIELDS):
            continue
        server, window, label, active, in_mode, pid, runs, name = parts
        before = found.get((server, window))
        pids = (*(before.pids if before else ()), int(pid))
        if active == "1" or before is None:
            target = Target(server, window, label)
            found[server, window] = Window(target, name, runs, in_mode != "0", pids)
        else:
            found[server, window] = Window(
                before.target, before.name, before.runs, before.in_mode, pids
            )
    return tuple(found.values())


async def _wait_for_any(pids: tuple[int, ...]) -> bool:
    """Wait until one of these processes has ended; False if one had ended before."""
    handles: list[int] = []
    try:
        handles.extend(os.pidfd_open(pid) for pid in pids)
        async with trio.open_nursery() as nursery:

            async def wait(handle: int) -> None:
                await trio.lowlevel.wait_readable(handle)
                nursery.cancel_scope.cancel()

            for handle in handles:
                nursery.start_soon(wait, handle)
        return True
    except ProcessLookupError:
        return False
    finally:
        for handle in handles:
            with suppress(OSError):
                os.close(handle)
