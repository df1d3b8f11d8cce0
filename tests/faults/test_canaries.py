"""S2: the token and the prompts are found nowhere they must not be."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.botapi.faults import Cut, Html
from tests.botapi.refusal import Refused
from tests.conftest import Figures
from tests.e2e.rig import new_token
from tests.faults.rig import PATIENT, FaultRig, open_fault_rig
from tests.kit.processes import descendants

SECRET = "AAHcanary-of-the-token-00000000000000"
PROMPT = "canary-of-the-prompt"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[FaultRig, None]:
    token = f"{new_token().partition(':')[0]}:{SECRET}"
    async with open_fault_rig(tmp_path, token=token) as rig:
        yield rig


async def test_s2_canaries_are_found_nowhere_they_must_not_be(
    rig: FaultRig, figures: Figures
) -> None:
    # What hangs in the end is not waited for.
    rig.configure(f"{PATIENT}limits.drain_s = 0.5\n")
    await rig.start()
    told = await rig.answer("run env")
    assert "HOME=" in told.text
    # Whatever goes wrong with a request is logged, and its address holds the token.
    for trouble in (Html(), Cut(), Refused(500, "Internal Server Error")):
        rig.api.fail(trouble, method="getUpdates")
        rig.api.fail(trouble, method="sendMessage")
    await rig.say(f"{PROMPT} and then some")
    await rig.say(f"fail: {PROMPT}")
    await rig.until_over()
    await rig.say(f"{PROMPT}\nfork, hang")
    assert rig.process is not None
    daemon = rig.process.pid
    # The keeper, its warden, the engine and the three that it left.
    await rig.until_so(lambda: len(descendants(daemon)) == 6, lambda: rig.log[-3000:])
    below = descendants(daemon)
    for pid in (daemon, *below):
        argv = _of_process(pid, "cmdline")
        assert SECRET.encode() not in argv
        assert PROMPT.encode() not in argv
    for pid in below:
        assert SECRET.encode() not in _of_process(pid, "environ")
    await rig.stop()
    assert SECRET not in rig.log
    assert PROMPT not in rig.log
    assert "poll.failed" in rig.log
    files = [file for file in rig.home.rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]
    assert not [m for m in rig.chat.everything if SECRET in m.text]
    figures("S2", processes=1 + len(below), files=len(files), found=0)


async def test_s2_an_engine_that_prints_the_token_shows_stars(rig: FaultRig) -> None:
    # Outside of what is searched below.
    leak = rig.folder / "leak.txt"
    leak.write_text(f"it is {rig.api.token}, and not a word more\n", encoding="utf-8")
    await rig.start()

    told = await rig.answer(f"run cat {leak}")
    await rig.stop()

    assert f"it is {'*' * len(rig.api.token)}, and not a word more" in told.text
    assert not [request for request in rig.api.requests if SECRET in repr(request.parameters)]
    files = [file for file in rig.home.rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]


def _of_process(pid: int, what: str) -> bytes:
    return Path(f"/proc/{pid}/{what}").read_bytes()
