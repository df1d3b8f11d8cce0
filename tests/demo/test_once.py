from __future__ import annotations

import re

from tests.demo.process import Demo


async def test_conversation_is_played_and_printed(demo: Demo) -> None:
    await demo.start("--once")

    assert await demo.ended() == 0, demo.out

    assert re.findall(r"^(\d)\. ", demo.out, re.MULTILINE) == ["1", "2", "3", "4", "5", "6"]
    assert "  edited │ waiting for you · demo" in demo.out
    assert "  takopi │ done · demo" in demo.out
    assert "         │ ctx: aquarium @ fix/arms" in demo.out
    assert "         │ demo --resume " in demo.out
    assert demo.out.count("  edited │ allowed once") == 2
    assert "  takopi │ demo wants to use sample__add" in demo.out
    assert "You said: “sample__add succeeded: text 42" in demo.out
    assert "tool_calls" not in demo.out
    assert "  takopi │ cancelled · demo" in demo.out
    assert demo.alive() == []
    assert list(demo.tmp.iterdir()) == []
