"""Starts children so that none of their descendants outlives them, their cancel, or their owner.

Run as a program (`python -I -S keeper.py FD`): a single-threaded process with few imports, so
that a fork of it is small and quick. For every child it forks a *warden*:

    owner ══ socket ══ keeper            one byte and four descriptors ask for a child
      ║                  └ warden        a subreaper: every orphan below it becomes its child
      ╚═ link ═════════════╝ └ child     leader of a session of its own

The owner and the warden share the link. The order (argv, cwd, environment) comes over it, the
child's fate goes back over it, and its end of file is the death of the owner, whichever way that
happened. A warden whose child has ended, whose owner is gone or who is told to stop ends every
descendant: SIGTERM, grace, SIGKILL until `wait` says that there is no child left, which for a
subreaper means no descendant. The keeper is a subreaper too and ends what a killed warden left.

Where there is no subreaper (not Linux) only the child's process group is ended.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import socket
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
FDS_PER_CHILD = 4
ORDER_HEADER_BYTES = 32
SWEEP_FIRST_S = 0.01
SWEEP_LAST_S = 1.0
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def become_subreaper() -> None:
    """Make every orphan below this process its child, where the system can do that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants_of(root: int) -> list[int]:
    """Every living process below `root`, by one pass over /proc; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")  # ruff: ignore[os-listdir] pathlib is too heavy for us
    except OSError:
        return []
    for name in names:
        if not name.isdigit():
            continue
        try:
            # ruff: ignore[builtin-open, read-whole-file] pathlib is too heavy for us
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name in parentheses may hold anything, a closing parenthesis too.
                parent = file.read().rpartition(b")")[2].split(None, 2)[1]
        except (OSError, IndexError):
            continue  # it ended while we looked
        children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def signal_all(pids: list[int], signum: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signum)
        except OSError:
            continue  # gone already, or not ours to end


def watch_children() -> int:
    """A descriptor that becomes readable when a child of this process has ended."""
    read_end, write_end = os.pipe()
    for fd in (read_end, write_end):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    # Python writes to the pipe only for signals that have a handler of their own.
    signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)
    return read_end


def wait_readable(fds: list[int], timeout_s: float | None) -> list[int]:
    """Like select, for reading only, and with the wakeup descriptor in front emptied."""
    ready, _, _ = select.select(fds, [], [], timeout_s)
    try:
        while os.read(fds[0], 512):
            pass
    except BlockingIOError:
        pass
    return ready


class Warden:
    """Watches over one child and everything below it."""

    def __init__(self, link: socket.socket, stdio: list[int]) -> None:
        self.link = link
        self.stdio = stdio
        self.child_ended = watch_children()
        self.child = 0
        self.grace_s = 0.0
        self.owner_there = True

    def run(self) -> None:
        self.tell("ready")
        order = self.receive_order()
        if order is None:
            return
        self.grace_s, argv, cwd, env = order
        if not self.start(argv, cwd, env):
            return
        group, told_to_stop = self.child, False
        while self.child and not told_to_stop:
            told_to_stop = self.listen(None)
            self.reap()
        if self.reap():
            self.end_everything(group)
        self.tell("clear")

    def tell(self, word: str) -> None:
        try:
            self.link.sendall(word.encode() + b"\n")
        except OSError:
            self.owner_there = False

    def receive_order(self) -> tuple[float, list[bytes], bytes, dict[bytes, bytes]] | None:
        header = self.receive_exactly(ORDER_HEADER_BYTES)
        if header is None:
            return None
        size, arguments, grace_ms = map(int, header.split())
        body = self.receive_exactly(size)
        if body is None:
            return None
        cwd, *rest = body.split(b"\0")
        env = dict(item.split(b"=", 1) for item in rest[arguments:])
        return grace_ms / 1000, rest[:arguments], cwd, env

    def receive_exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            chunk = self.link.recv(size - len(data))
            if not chunk:
                return None
            data += chunk
        return bytes(data)

    def start(self, argv: list[bytes], cwd: bytes, env: dict[bytes, bytes]) -> bool:
        read_end, write_end = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            become_child(argv, cwd, env, stdio=self.stdio, complain_to=write_end)
        for fd in (write_end, *self.stdio):
            os.close(fd)
        # Ends with the exec, which closes the other end, or with the reason why there was none.
        complaint = os.read(read_end, 64)
        os.close(read_end)
        if complaint:
            os.waitpid(self.child, 0)
            self.tell(f"failed {complaint.decode()}")
            return False
        self.tell(f"started {self.child}")
        return True

    def reap(self) -> bool:
        """Collect the dead; is any descendant left?"""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.child = 0
                self.tell(f"exited {os.waitstatus_to_exitcode(status)}")

    def listen(self, timeout_s: float | None) -> bool:
        """Wait for a dead child or a word; True if the word, or the owner's death, means stop."""
        # A link at its end is always ready, and would turn the wait into a spin.
        link = [self.link.fileno()] if self.owner_there else []
        if not set(link) & set(wait_readable([self.child_ended, *link], timeout_s)):
            return False
        try:
            words = self.link.recv(256).split()
        except OSError:
            words = []
        if words:
            self.grace_s = int(words[-1]) / 1000
        else:
            self.owner_there = False
        return True

    def end_everything(self, group: int) -> None:
        me = os.getpid()
        self.signal_tree(me, group, signal.SIGTERM)
        deadline = time.monotonic() + self.grace_s
        while (left := deadline - time.monotonic()) > 0 and self.reap():
            if self.listen(left):
                deadline = min(deadline, time.monotonic() + self.grace_s)
        pause_s = SWEEP_FIRST_S
        while self.reap():
            self.signal_tree(me, group, signal.SIGKILL)
            wait_readable([self.child_ended], pause_s)
            pause_s = min(pause_s * 2, SWEEP_LAST_S)

    def signal_tree(self, me: int, group: int, signum: int) -> None:
        pids = descendants_of(me)
        signal_all(pids, signum)
        if not pids and self.child:
            signal_all([-group], signum)


def become_child(
    argv: list[bytes],
    cwd: bytes,
    env: dict[bytes, bytes],
    *,
    stdio: list[int],
    complain_to: int,
) -> None:
    stage = "chdir"
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for signum in (*IGNORED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(signum, signal.SIG_DFL)
        for target, fd in enumerate(stdio):
            os.dup2(fd, target)
        os.chdir(cwd)
        stage = "exec"
        os.execvpe(argv[0], argv, env)  # ruff: ignore[start-process-with-no-shell] by design
    except OSError as error:
        os.write(complain_to, f"{stage} {error.errno or errno.EIO}".encode())
    finally:
        os._exit(127)


def keep(requests: socket.socket) -> None:
    """Fork a warden for every request until the owner is gone and no descendant is left."""
    child_ended = watch_children()
    wardens: set[int] = set()
    owner_there, strays = True, False
    while owner_there or wardens or strays:
        inlet = [requests.fileno()] if owner_there else []
        ready = wait_readable([child_ended, *inlet], SWEEP_LAST_S if strays else None)
        strays = (collect(wardens) or strays) and end_strays(wardens)
        if not set(inlet) & set(ready):
            continue
        _, fds, _, _ = socket.recv_fds(requests, 1, FDS_PER_CHILD)
        if len(fds) < FDS_PER_CHILD:
            owner_there = False
            continue
        try:
            pid = os.fork()
        except OSError:
            pid = -1  # the owner learns it from the link, which ends without a word
        if pid == 0:
            requests.close()
            run_warden(fds)
        elif pid > 0:
            wardens.add(pid)
        for fd in fds:
            os.close(fd)


def collect(wardens: set[int]) -> bool:
    """Reap what has ended; True if a warden was among it that could not do its work."""
    failed = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return failed
        if pid == 0:
            return failed
        failed = failed or (pid in wardens and status != 0)
        wardens.discard(pid)


def end_strays(wardens: set[int]) -> bool:
    """End what a killed warden left behind, which is ours now; True while any of it may live."""
    kept = {*wardens, *(pid for warden in wardens for pid in descendants_of(warden))}
    strays = [pid for pid in descendants_of(os.getpid()) if pid not in kept]
    signal_all(strays, signal.SIGKILL)
    return bool(strays)


def run_warden(fds: list[int]) -> None:
    code = 1
    try:
        for fd in fds:
            os.set_inheritable(fd, False)  # ruff: ignore[boolean-positional-value-in-call] C
        become_subreaper()
        Warden(socket.socket(fileno=fds[0]), fds[1:]).run()
        code = 0
    finally:
        os._exit(code)


def main() -> None:
    for signum in IGNORED:
        signal.signal(signum, signal.SIG_IGN)
    os.chdir("/")
    become_subreaper()
    requests = socket.socket(fileno=int(sys.argv[1]))
    # Frozen objects are never visited by the collector, so forks share their pages for good.
    gc.disable()
    gc.freeze()
    keep(requests)


if __name__ == "__main__":
    main()
