"""F12 and F13: silence is not death, and no amount of output is a deadlock."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio

from takopi.kit.exchange import STDERR_BYTES, Feed, exchange, feed_bytes
from takopi.kit.proc import Command, Keeper
from tests.faults.promises import LONG
from tests.kit.processes import alive, marked, new_mark, shell

GRACE_S = 0.3
SILENT_S = 30 if LONG else 12


def python(script: str, mark: str) -> Command:
    return Command([sys.executable, "-c", script], Path("/"), marked(mark))


class Collected:
    def __init__(self) -> None:
        self.data = bytearray()

    async def read(self, stdout: trio.abc.ReceiveStream) -> None:
        async for chunk in stdout:
            self.data += chunk


async def test_exchange_returns_code_output_and_the_end_of_stderr(keeper: Keeper) -> None:
    out = Collected()
    ending = await exchange(
        keeper,
        shell("cat; echo oops >&2; exit 4", new_mark()),
        feed=feed_bytes(b"hello"),
        read=out.read,
        grace_s=GRACE_S,
    )
    assert (ending.code, ending.stderr, ending.stopped) == (4, b"oops\n", False)
    assert out.data == b"hello"


async def test_f13_two_megabytes_each_way_at_once(keeper: Keeper) -> None:
    script = (
        "import sys, threading\n"
        "size = 2_000_000\n"
        "noise = threading.Thread(target=lambda: sys.stderr.write('e' * size))\n"
        "noise.start(); sys.stdout.write('o' * size); sys.stdout.flush(); noise.join()\n"
        "print(len(sys.stdin.read()))\n"
    )
    out = Collected()
    with trio.fail_after(60):
        ending = await exchange(
            keeper,
            python(script, new_mark()),
            feed=feed_bytes(b"i" * 2_000_000),
            read=out.read,
            grace_s=GRACE_S,
        )
    assert ending.code == 0
    assert out.data == b"o" * 2_000_000 + b"2000000\n"
    assert ending.stderr == b"e" * STDERR_BYTES


async def test_f12_a_long_silence_is_not_the_end(keeper: Keeper) -> None:
    # Longer than the ten idle seconds after which Trio lets the thread go that spawned it. Every
    # engine is silent for thirty in a test of its own.
    out = Collected()
    with trio.fail_after(120):
        ending = await exchange(
            keeper,
            shell(f"sleep {SILENT_S}; echo awake", new_mark()),
            feed=feed_bytes(b""),
            read=out.read,
            grace_s=GRACE_S,
        )
    assert (ending.code, bytes(out.data)) == (0, b"awake\n")


async def test_child_that_reads_nothing_is_no_error(keeper: Keeper) -> None:
    ending = await exchange(
        keeper,
        shell("exec 0<&-; exit 0", new_mark()),
        feed=feed_bytes(b"x" * 1_000_000),
        read=Collected().read,
        grace_s=GRACE_S,
    )
    assert ending.code == 0


async def test_reader_that_has_enough_gives_the_child_its_linger_and_then_stops_it(
    keeper: Keeper,
) -> None:
    mark = new_mark()

    async def one_piece(stdout: trio.abc.ReceiveStream) -> None:
        assert await stdout.receive_some() == b"done\n"

    with trio.fail_after(20):
        ending = await exchange(
            keeper,
            shell("echo done; sleep 300", mark),
            feed=feed_bytes(b""),
            read=one_piece,
            grace_s=GRACE_S,
            linger_s=0.2,
        )
    assert ending.stopped
    assert ending.code == -15
    assert alive(mark) == []


async def test_pipe_kept_open_by_a_stranger_does_not_hold_up_the_ending(
    keeper: Keeper, tmp_path: Path
) -> None:
    # A process that is no descendant of the child gets hold of its stdout through a socket.
    script = (
        "import array, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1]))])\n"
        "s.recv(1)\n"
    )
    path = str(tmp_path / "s")
    listener = trio.socket.socket(trio.socket.AF_UNIX)
    await listener.bind(path)
    listener.listen(1)
    held: list[int] = []

    async def hold() -> None:
        connection, _ = await listener.accept()
        _, rights, _, _ = await connection.recvmsg(1, 1024)
        held.append(int.from_bytes(rights[0][2], sys.byteorder))
        await connection.send(b"y")
        connection.close()

    command = Command([sys.executable, "-c", script, path], Path("/"), marked(new_mark()))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold)
        with trio.fail_after(30):
            ending = await exchange(
                keeper,
                command,
                feed=feed_bytes(b""),
                read=Collected().read,
                grace_s=GRACE_S,
                linger_s=0.2,
            )
    listener.close()
    assert held
    assert (ending.code, ending.stopped) == (0, False)


async def test_error_of_the_reader_comes_out_as_it_is_and_ends_the_child(keeper: Keeper) -> None:
    mark = new_mark()

    async def refuse(_stdout: trio.abc.ReceiveStream) -> None:
        await trio.lowlevel.checkpoint()
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await exchange(
            keeper,
            shell("sleep 300", mark),
            feed=feed_bytes(b""),
            read=refuse,
            grace_s=GRACE_S,
        )
    assert alive(mark) == []


async def test_error_of_the_feeder_comes_out_as_it_is_and_ends_the_child(keeper: Keeper) -> None:
    mark = new_mark()

    async def refuse(_stdin: trio.abc.SendStream) -> None:
        await trio.lowlevel.checkpoint()
        raise LookupError("no")

    feed: Feed = refuse
    with pytest.raises(LookupError, match="no"):
        await exchange(
            keeper,
            shell("sleep 300", mark),
            feed=feed,
            read=Collected().read,
            grace_s=GRACE_S,
        )
    assert alive(mark) == []
