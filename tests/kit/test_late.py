from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import trio

from takopi.kit.late import load

MODULE = "import os\nos.write({told}, b'x')\nos.read({let}, 1)\nis_whole = True\n"


async def test_cancel_waits_until_a_module_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, let = os.pipe(), os.pipe()
    (tmp_path / "slow_to_load.py").write_text(MODULE.format(told=told[1], let=let[0]))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load, "slow_to_load")
            await trio.lowlevel.wait_readable(told[0])
            nursery.cancel_scope.cancel()
            os.write(let[1], b"x")

    assert sys.modules.pop("slow_to_load").is_whole
    for fd in (*told, *let):
        os.close(fd)
