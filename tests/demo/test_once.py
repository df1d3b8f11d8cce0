from __future__ import annotations

import re

from tests.demo.process import Demo


async def test_conversation_is_played_and_printed(demo: Demo) -> None:
    await demo.start("--once")

    assert await demo.ended() == 0, demo.out

    assert re.findall(r"^(\d)\. ", demo.out, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert "  edited │ waiting for you · demo" in demo.out
    assert "  takopi │ done · demo" in demo.out
    assert "         │ ctx: aquarium @ fix/arms" in demo.out
    assert "         │ demo --resume " in demo.out
    assert "allowed once" in demo.out
    assert "  takopi │ cancelled · demo" in demo.out
    assert demo.alive() == []
    assert list(demo.tmp.iterdir()) == []
