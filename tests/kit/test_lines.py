"""F14: lines of any length and any bytes, in bounded memory."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path

import trio
from hypothesis import given
from hypothesis import strategies as st

from takopi.kit.lines import LineReader, Oversize
from tests.conftest import Figures
from tests.faults.promises import LONG
from tests.kit import reading_child

MIB = 1024 * 1024
LINE_BYTES = (300 if LONG else 100) * MIB
"""The short form's line is longer than all that takopi may grow by, too."""


class Pieces:
    """A source that gives bytes in pieces of the sizes it was told."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.data = data
        self.sizes = sizes

    async def receive_some(self, max_bytes: int | None = None, /) -> bytes:
        await trio.lowlevel.checkpoint()
        size = min(self.sizes.pop() if self.sizes else 65536, max_bytes or 65536)
        piece, self.data = self.data[:size], self.data[size:]
        return piece


def read_lines(
    data: bytes, *, sizes: list[int] | None = None, max_bytes: int = 1000
) -> list[bytes | Oversize]:
    async def collect() -> list[bytes | Oversize]:
        reader = LineReader(Pieces(data, list(sizes or [])), max_bytes=max_bytes)
        lines: list[bytes | Oversize] = []
        while batch := await reader.receive():
            lines += batch
        assert await reader.receive() == []
        return lines

    return trio.run(collect)


def test_lines_come_without_their_newline_and_the_unterminated_last_one_counts() -> None:
    assert read_lines(b"one\n\ntwo\nthree") == [b"one", b"", b"two", b"three"]
    assert read_lines(b"one\n") == [b"one"]
    assert read_lines(b"") == []


def test_longer_line_is_skipped_with_its_size_and_the_next_one_is_whole() -> None:
    data = b"a\n" + b"x" * 25 + b"\nb\n" + b"y" * 30
    assert read_lines(data, max_bytes=20) == [b"a", Oversize(25), b"b", Oversize(30)]
    assert read_lines(b"x" * 20 + b"\n", max_bytes=20) == [b"x" * 20]
    assert read_lines(b"x" * 21 + b"\n", max_bytes=20) == [Oversize(21)]


def test_bad_utf8_is_replaced_and_good_utf8_is_left_alone() -> None:
    assert read_lines(b"caf\xc3\xa9\n\xff\xfe!\nok") == [
        "café".encode(),
        "\ufffd\ufffd!".encode(),
        b"ok",
    ]


@given(
    data=st.lists(st.sampled_from([b"a", b"\n", b"\xc3\xa9", b"\xff", b"bb"]), max_size=60),
    sizes=st.lists(st.integers(1, 7), max_size=60),
    limit=st.integers(1, 12),
)
def test_pieces_make_no_difference(data: list[bytes], sizes: list[int], limit: int) -> None:
    joined = b"".join(data)
    expected: list[bytes | Oversize] = [
        Oversize(len(line)) if len(line) > limit else line.decode(errors="replace").encode()
        for line in joined.split(b"\n")
    ]
    if not joined or joined.endswith(b"\n"):
        expected.pop()
    assert read_lines(joined, sizes=sizes, max_bytes=limit) == expected


async def test_cancelled_receive_loses_nothing() -> None:
    sent, received = trio.testing.memory_stream_one_way_pair()
    reader = LineReader(received, max_bytes=1000)
    await sent.send_all(b"half a li")
    with trio.move_on_after(0):
        await reader.receive()
    with trio.move_on_after(0.01):
        await reader.receive()
    await sent.send_all(b"ne\n")
    assert await reader.receive() == [b"half a line"]


async def test_f14_a_line_of_300_mib_is_skipped_in_bounded_memory(figures: Figures) -> None:
    script = f"head -c {LINE_BYTES} /dev/zero | tr '\\0' x; printf '\\nafter\\n\\377 tail'"
    argv = [sys.executable, "-m", reading_child.__name__, script]
    with trio.fail_after(120):
        done = await trio.run_process(argv, capture_stdout=True, cwd=Path(__file__).parents[2])
    seen = json.loads(done.stdout)
    grown = seen.pop("grown_bytes")
    assert seen == {"code": 0, "lines": [LINE_BYTES, "after", "\ufffd tail"]}
    assert grown < 64 * MIB
    figures("F14", line_mib=LINE_BYTES // MIB, reader=f"+{grown / MIB:.1f} MiB")


async def test_f14_a_line_just_within_the_limit_of_nothing_but_bad_bytes_stays_bounded() -> None:
    limit = 10 << 20

    class Noise:
        left = limit

        async def receive_some(self, max_bytes: int | None = None, /) -> bytes:
            await trio.lowlevel.checkpoint()
            size = min(self.left, max_bytes or 65536)
            self.left -= size
            return b"\xff" * size

    tracemalloc.start()
    try:
        (line,) = await LineReader(Noise(), max_bytes=limit).receive()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(line, bytes)
    # Each bad byte becomes three. The line as it came, as it goes, and little else.
    assert len(line) == 3 * limit
    assert peak < 4 * limit + (8 << 20)
