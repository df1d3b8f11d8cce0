"""Words that misbehave, each in one way that a real CLI has been seen to."""

from __future__ import annotations

import os
import signal
import time

from takopi.engines.demo.child.turn import Failed, Turn
from takopi.engines.demo.child.wire import STDERR, STDOUT, write_all
from takopi.engines.demo.child.words import Step, size_bytes

MAX_SIZE_BYTES = 1_000_000_000
CHUNK_BYTES = 65536
LIMIT_RESETS = "23:00 UTC"
"""Always the same, so that a recording can be compared."""

GARBAGE = (
    b"this line is not JSON",
    b'{"type": "step", "id": ',
    b"[1, 2, 3]",
    b'{"type": "step", "id": 7}',
    b"\xff\xfe\x00 bytes that are no UTF-8",
    b'{"type": "unheard-of", "id": "x"}',
)


def fail(_turn: Turn, step: Step) -> None:
    """End with an error."""
    raise Failed(step.args[0])


def limit_rate(turn: Turn, _step: Step) -> None:
    """Warn, then end with an error."""
    turn.do("warning", f"The usage limit is reached, resets {LIMIT_RESETS}", ok=False)
    raise Failed(f"the usage limit is reached, it resets at {LIMIT_RESETS}")


def crash(_turn: Turn, _step: Step) -> None:
    """End without a result."""
    write_all(STDERR, b"asked to crash, so it did\n")
    os._exit(3)


def hang(turn: Turn, _step: Step) -> None:
    """Go on for good."""
    turn.wire.hang()


def turn_stubborn(turn: Turn, _step: Step) -> None:
    """Listen to no request to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    turn.wire.stubborn = True
    turn.do("note", "Ignoring SIGTERM from here on")
    turn.say("I ignored SIGTERM and the polite word from there on.")


def fork(turn: Turn, _step: Step) -> None:
    """Leave processes behind: a plain one, one in its own session, and one that forked twice.

    They hold on to stdout and stderr, as forgotten processes do.
    """
    # Set before the forks, so that there is no moment in which they listen.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pids = [_leave_behind(), _leave_behind(new_session=True)]
    read_end, write_end = os.pipe()
    between = os.fork()
    if between == 0:
        os.setsid()
        os.write(write_end, str(_leave_behind()).encode())
        os._exit(0)
    os.close(write_end)
    os.waitpid(between, 0)
    pids.append(int(os.read(read_end, 32)))
    os.close(read_end)
    signal.signal(signal.SIGTERM, before)
    turn.do("note", "Left 3 processes behind", detail=" ".join(map(str, pids)))
    turn.say("I left three processes behind: plain, with setsid, and forked twice.")


def make_noise(turn: Turn, step: Step) -> None:
    """Write to stderr."""
    size = _bounded(step.args[0]) if step.args else 2000
    line = b"demo: noise on stderr that means nothing at all\n"
    chunk = line * (CHUNK_BYTES // len(line))
    while size > 0:
        write_all(STDERR, chunk[:size])
        size -= len(chunk)
        turn.wire.check()
    turn.say("I made some noise on stderr.")


def write_garbage(turn: Turn, _step: Step) -> None:
    """Write lines that are not of the language."""
    write_all(STDOUT, b"".join(line + b"\n" for line in GARBAGE))
    turn.say(f"I wrote {len(GARBAGE)} lines of garbage.")


def write_big_line(turn: Turn, step: Step) -> None:
    """Write one line of a given size, in pieces, so that it is never whole in memory."""
    size = _bounded(step.args[0])
    start = b'{"type":"step","id":"big","kind":"note","title":"a big line","detail":"'
    end = b'"}\n'
    write_all(STDOUT, start)
    left = max(size - len(start) - len(end) + 1, 0)
    while left > 0:
        piece = b"x" * min(left, CHUNK_BYTES)
        write_all(STDOUT, piece)
        turn.wire.check()
        left -= len(piece)
    write_all(STDOUT, end)
    turn.say(f"I wrote a line of {size} bytes.")


def flood(turn: Turn, step: Step) -> None:
    """Take steps as fast as the pipe takes them."""
    count = int(step.args[0])
    line = (
        b'{"type":"step","id":"flood-%d","kind":"tool","title":"step %d of %d",'
        b'"phase":"completed","ok":true,"detail":""}\n'
    )
    batch = 500
    for start in range(1, count + 1, batch):
        numbers = range(start, min(start + batch, count + 1))
        write_all(STDOUT, b"".join(line % (number, number, count) for number in numbers))
        turn.wire.check()
    turn.say(f"I took {count} steps.")


def _leave_behind(*, new_session: bool = False) -> int:
    pid = os.fork()
    if pid == 0:
        if new_session:
            os.setsid()
        while True:
            time.sleep(3600)
    return pid


def _bounded(size: str) -> int:
    if (count := size_bytes(size)) > MAX_SIZE_BYTES:
        raise Failed(f"{size} is too much; {MAX_SIZE_BYTES} bytes are the most")
    return count
