"""What the kernel knows of another process: its memory, its CPU time, its children."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path


def rss_mib(pid: int) -> float:
    """What it holds in memory now."""
    return _field_mib(pid, "status", "VmRSS")


def peak_mib(pid: int) -> float:
    """The most that it ever held, since `forget_peak`."""
    return _field_mib(pid, "status", "VmHWM")


def forget_peak(pid: int) -> None:
    """Let the peak begin anew, at what is held now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def pss_mib(pids: Iterable[int]) -> float:
    """What these processes hold, with what they share counted once."""
    return sum(_field_mib(pid, "smaps_rollup", "Pss") for pid in pids)


def cpu_s(pid: int) -> float:
    """The CPU time that all its threads have used, dead ones too."""
    # The kernel's name for another process's CPU clock: see clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)


def parent(pid: int) -> int:
    """Who started it, or took it over."""
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def children(pid: int) -> list[int]:
    """Its children that live."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def _field_mib(pid: int, file: str, name: str) -> float:
    text = Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8")
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    assert found is not None, f"{file} has no {name}"
    return int(found[1]) / 1024
