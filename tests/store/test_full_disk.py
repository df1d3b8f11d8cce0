from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store import full_disk_child

OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]


def may_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(folder)]
    return subprocess.run([*OWN_MOUNTS, *mount], capture_output=True, check=False).returncode == 0


def test_f15_a_full_disk_is_told_before_anything_is_confirmed_and_passes(tmp_path: Path) -> None:
    if not may_mount(tmp_path):
        pytest.skip("mounting is not allowed here; the page limit test stands for it")
    done = subprocess.run(
        [*OWN_MOUNTS, sys.executable, full_disk_child.__file__, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("confirmed ")
