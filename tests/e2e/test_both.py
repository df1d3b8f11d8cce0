"""A daemon that listens on Telegram and on its page at once."""

from __future__ import annotations

import re

import trio

from takopi.cli.demo_page import open_page
from tests.e2e.rig import WITHIN_S, Rig

BOTH = 'transports = ["telegram", "web"]\nweb.port = 0\n'
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")


async def test_page_and_bot_are_answered_by_one_takopi_each_where_it_asked(rig: Rig) -> None:
    rig.configure(BOTH)
    await rig.start()
    await rig.until_so(lambda: ADDRESS.search(rig.log) is not None)
    found = ADDRESS.search(rig.log)
    assert found is not None

    with trio.fail_after(WITHIN_S):
        async with open_page(found[0], tell=lambda _line: None) as page:
            await page.say("say: hello page")
            shown = await page.sees("the answer", lambda m: "hello page" in m.text)
            told = await rig.answer("say: hello bot")

    assert shown.text.startswith("done · demo")
    assert "hello bot" in told.text
    assert "hello page" not in rig.transcript
    assert rig.rows("SELECT DISTINCT transport FROM runs ORDER BY 1") == [("telegram",), ("web",)]
