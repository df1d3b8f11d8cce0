"""CPU per line from a pipe to a decoded value, against a loop that only reads and decodes."""

from __future__ import annotations

import os
import threading
import time

import msgspec
import trio

from takopi.kit.lines import LineReader
from tests.bench.measure import Row, median

LINES = 50_000
ROUNDS = 5


def measure() -> Row:
    data = b"".join(
        msgspec.json.encode({
            "type": "assistant",
            "session_id": "ccc6bef8-5a9f-400c-b9ce-363707802258",
            "message": {
                "id": f"msg_{number}",
                "content": [{"type": "text", "text": "some words of the model " * 6}],
                "usage": {"input_tokens": 100, "output_tokens": number},
            },
        })
        + b"\n"
        for number in range(LINES)
    )
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        floor.append(_cpu_us(data, _bare))
        ours.append(_cpu_us(data, _through_reader))
    return Row(
        "lines: pipe to decoded value",
        median(ours),
        "us",
        "bare read + msgspec decode",
        median(floor),
        f"CPU per line, {LINES} lines",
    )


def _cpu_us(data: bytes, work: object) -> float:
    read_end, write_end = os.pipe()
    writer = threading.Thread(target=_write, args=(write_end, data))
    writer.start()
    began = time.thread_time()
    assert callable(work)
    count = work(read_end)
    spent = time.thread_time() - began
    writer.join()
    assert count == LINES
    return spent / LINES * 1e6


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[: 1 << 16]) :]
    os.close(fd)


def _bare(fd: int) -> int:
    decoder = msgspec.json.Decoder()
    count = 0
    with os.fdopen(fd, "rb") as file:
        for line in file:
            decoder.decode(line)
            count += 1
    return count


def _through_reader(fd: int) -> int:
    async def read() -> int:
        decoder = msgspec.json.Decoder()
        count = 0
        async with trio.lowlevel.FdStream(fd) as stream:
            reader = LineReader(stream, max_bytes=10 << 20)
            while batch := await reader.receive():
                for line in batch:
                    assert isinstance(line, bytes)
                    decoder.decode(line)
                count += len(batch)
        return count

    return trio.run(read)
