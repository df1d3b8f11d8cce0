from __future__ import annotations

import re
import signal
import socket

import pytest
import trio

from takopi.cli.demo_page import open_page
from tests.demo.process import WITHIN_S, Demo


async def start_with_a_run_that_hangs(demo: Demo) -> None:
    await demo.start()
    await demo.until_printed("Ctrl-C ends takopi")
    idle = len(demo.alive())
    with trio.fail_after(WITHIN_S):
        async with open_page(demo.url, tell=lambda _: None) as page:
            await page.say("fork, stubborn, hang")
            await page.sees("the progress", lambda shown: "Cancel" in shown.labels)
            await demo.until_alive(idle + 4)


async def test_address_and_six_things_to_try_are_printed(demo: Demo) -> None:
    began = trio.current_time()
    await demo.start()
    await demo.until_printed("http://127.0.0.1:")
    print(f"the demo was there after {trio.current_time() - began:.2f} s")
    await demo.until_printed("Ctrl-C ends takopi")

    assert all(f"  {number}. " in demo.out for number in range(1, 7))


async def test_session_is_planned_approved_and_reported(demo: Demo) -> None:
    await demo.start()
    await demo.until_printed("Ctrl-C ends takopi")
    (first,) = re.findall(r"^  6\. (.+)$", demo.out, re.MULTILINE)
    (second,) = re.findall(r"Then (/session plan .+)", demo.out)

    with trio.fail_after(WITHIN_S):
        async with open_page(demo.url, tell=lambda _: None) as page:
            await page.say(first)
            await page.sees("the session", lambda m: "has begun" in m.text)
            await page.say(second)
            card = await page.sees("the plan", lambda m: "Approve all" in m.labels)
            await page.press(card, "Approve all")
            report = await page.sees("the report", lambda m: "Next turn" in m.labels)

    assert "SUCCESS" in report.text
    assert "write a greeting" in report.text


async def test_tool_of_the_sample_server_is_called_once_it_is_allowed(demo: Demo) -> None:
    await demo.start()
    await demo.until_printed("Ctrl-C ends takopi")
    (line,) = re.findall(r"^  4\. (.+)$", demo.out, re.MULTILINE)

    with trio.fail_after(WITHIN_S):
        async with open_page(demo.url, tell=lambda _: None) as page:
            prompt = await page.say(line)
            card = await page.sees(
                "the card", lambda m: m.reply_to == prompt and "Allow once" in m.labels
            )
            await page.press(card, "Allow once")
            answer = await page.sees(
                "the answer", lambda m: m.reply_to == prompt and m.text.startswith("done · ")
            )

    assert "sample__add" in card.text
    assert "sample__add succeeded" in answer.text
    assert "42" in answer.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signal_leaves_no_process_and_no_folder(demo: Demo, number: signal.Signals) -> None:
    await start_with_a_run_that_hangs(demo)
    assert demo.process is not None

    demo.process.send_signal(number)

    assert await demo.ended() == 0, demo.out
    await demo.until_gone()
    assert list(demo.tmp.iterdir()) == []


async def test_kill_leaves_no_process(demo: Demo) -> None:
    await start_with_a_run_that_hangs(demo)
    assert demo.process is not None

    demo.process.kill()

    await demo.until_gone()


async def test_port_in_use_is_one_sentence_and_leaves_no_folder(demo: Demo) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        await demo.start("--port", str(port))
        assert await demo.ended() == 2

    assert demo.out.startswith(f"error: the page cannot listen on 127.0.0.1:{port}: ")
    assert "Traceback" not in demo.out
    assert list(demo.tmp.iterdir()) == []


async def test_own_takopi_of_the_person_is_neither_read_nor_changed(demo: Demo) -> None:
    demo.home.mkdir(mode=0o755)
    (demo.home / "takopi.toml").write_text("this is no config", encoding="utf-8")
    demo.environ |= {"TAKOPI_HOME": str(demo.home), "TAKOPI_BOT_TOKEN": "not a token"}

    await demo.start()
    await demo.until_printed("Ctrl-C ends takopi")

    assert [path.name for path in demo.home.iterdir()] == ["takopi.toml"]
