"""How much memory this process takes, for children that are started to measure their own growth."""

from __future__ import annotations

import gc
from pathlib import Path

FORGET_THE_LARGEST = "5"


def largest_bytes() -> int:
    """The most memory that this process has had since `forget_largest`, or ever."""
    return _bytes("VmHWM:")


def forget_largest() -> int:
    """Begin to measure anew; returns the memory of this moment."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text(FORGET_THE_LARGEST, encoding="ascii")
    return _bytes("VmRSS:")


def _bytes(what: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kib = next(line.split()[1] for line in status.splitlines() if line.startswith(what))
    return int(kib) * 1024
