"""A test tone as a real OGG file: FLAC with its samples as they are, in pages with checksums."""

from __future__ import annotations

import hashlib
import math
import struct

RATE_HZ = 8000
BLOCK = 2000
"""Samples in a frame."""


def tone(hz: int = 440, *, seconds: int = 1) -> bytes:
    """So many seconds of this tone, in mono with 16 bits a sample."""
    count = RATE_HZ * seconds
    samples = [
        round(20_000 * math.sin(2 * math.pi * hz * number / RATE_HZ)) for number in range(count)
    ]
    packets = [_head(samples), _comment()]
    granules = [0, 0]
    for number, start in enumerate(range(0, count, BLOCK)):
        packets.append(_frame(number, samples[start : start + BLOCK]))
        granules.append(start + BLOCK)
    last = len(packets) - 1
    return b"".join(
        _page(
            number, packet, granule=granules[number], flags=2 * (not number) + 4 * (number == last)
        )
        for number, packet in enumerate(packets)
    )


def _head(samples: list[int]) -> bytes:
    digest = hashlib.md5(struct.pack(f"<{len(samples)}h", *samples), usedforsecurity=False)
    # 20 bits of rate, 3 of channels less one, 5 of bits a sample less one, 36 of how many.
    shape = RATE_HZ << 44 | 0 << 41 | 15 << 36 | len(samples)
    info = struct.pack(">HH", BLOCK, BLOCK) + bytes(6) + struct.pack(">Q", shape) + digest.digest()
    return b"\x7fFLAC\x01\x00" + struct.pack(">H", 1) + b"fLaC" + _block(0, info)


def _comment() -> bytes:
    return _block(0x84, struct.pack("<I", 6) + b"takopi" + struct.pack("<I", 0))


def _block(kind: int, data: bytes) -> bytes:
    return struct.pack(">I", kind << 24 | len(data)) + data


def _frame(number: int, samples: list[int]) -> bytes:
    # The block size stands at the end of the head, the rate is the file's; mono, 16 bits.
    head = b"\xff\xf8\x70\x08" + bytes([number]) + struct.pack(">H", len(samples) - 1)
    head += bytes([_crc(head, bits=8, polynomial=0x07)])
    frame = head + b"\x02" + struct.pack(f">{len(samples)}h", *samples)
    return frame + struct.pack(">H", _crc(frame, bits=16, polynomial=0x8005))


def _page(number: int, packet: bytes, *, granule: int, flags: int) -> bytes:
    laces = bytes([255] * (len(packet) // 255) + [len(packet) % 255])
    head = struct.pack("<4sBBqIII", b"OggS", 0, flags, granule, 7, number, 0)
    page = head + bytes([len(laces)]) + laces + packet
    checksum = _crc(page, bits=32, polynomial=0x04C11DB7)
    return page[:22] + struct.pack("<I", checksum) + page[26:]


def _crc(data: bytes, *, bits: int, polynomial: int) -> int:
    value, top = 0, 1 << bits - 1
    for byte in data:
        value ^= byte << bits - 8
        for _ in range(8):
            value = (value << 1) ^ polynomial if value & top else value << 1
        value &= (1 << bits) - 1
    return value
