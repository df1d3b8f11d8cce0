"""Takes the picture of the README: the real page, after a short conversation with takopi."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from playwright.sync_api import sync_playwright

from takopi.cli.demo_page import Page, open_page
from tests.demo.process import WITHIN_S, open_demo

WIDTH, HEIGHT = 720, 1220
CHROMIUM = "chromium"
NO_SANDBOX = ["--no-sandbox"]


async def talk(page: Page) -> None:
    """An answer, and a question that waits for a press."""
    first = await page.say("@fix/arms run python3 aquarium.py")
    await page.sees("the answer", lambda m: m.reply_to == first and m.text.startswith("done · "))
    second = await page.say("ask approval to run git log --oneline")
    await page.sees("the card", lambda m: m.reply_to == second and "Allow once" in m.labels)
    await page.sees("the wait", lambda m: m.reply_to == second and m.text.startswith("waiting"))


async def take(picture: Path, folder: Path) -> None:
    with trio.fail_after(3 * WITHIN_S):
        async with open_demo(folder) as demo:
            await demo.start()
            await demo.until_printed("Ctrl-C ends takopi")
            async with open_page(demo.url, tell=lambda _: None) as page:
                await talk(page)
                await trio.to_thread.run_sync(photograph, demo.url, picture)


def photograph(
    url: str, picture: Path, *, waits_for: str = "Allow once", height: int = HEIGHT
) -> None:
    """What a browser shows, once there is a button of that name."""
    with sync_playwright() as playwright:
        # Containers have no user namespaces; the page is our own.
        browser = playwright.chromium.launch(
            executable_path=shutil.which(CHROMIUM), args=NO_SANDBOX
        )
        tab = browser.new_page(viewport={"width": WIDTH, "height": height})
        tab.goto(url)
        tab.get_by_role("button", name=waits_for).wait_for()
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        trio.run(partial(take, Path(sys.argv[1]).resolve(), Path(folder).resolve()))
