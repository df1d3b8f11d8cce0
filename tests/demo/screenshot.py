"""Takes pictures of the real page after a short conversation: all of it, and its last card."""

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

WIDTH, HEIGHT = 520, 1262
SCALE = 2
"""Pixels for each pixel of the page, so that letters stay sharp."""
CHROMIUM = "chromium"
NO_SANDBOX = ["--no-sandbox"]


async def talk(page: Page) -> None:
    """An answer, and a question that waits for a press."""
    first = await page.say("@fix/arms run git branch --show-current")
    await page.sees("the answer", lambda m: m.reply_to == first and m.text.startswith("done · "))
    second = await page.say("ask approval to run git log --oneline")
    await page.sees("the card", lambda m: m.reply_to == second and "Allow once" in m.labels)
    await page.sees("the wait", lambda m: m.reply_to == second and m.text.startswith("waiting"))


async def draft(page: Page) -> None:
    """Two messages that have become one prompt."""
    await page.say("/draft on")
    await page.say("accept trailing commas")
    await page.sees("the draft", lambda m: "trailing commas" in m.text and "Reset" in m.labels)
    await page.say("keep the error messages as they are")
    await page.sees("both", lambda m: "error messages" in m.text and "Revert" in m.labels)


async def review(page: Page) -> None:
    """A plan of a session that waits to be approved."""
    await page.say("/draft off")
    await page.say("/session new say-hello")
    await page.sees("the session", lambda m: "say-hello" in m.text)
    await page.say("/session plan Write a greeting")
    await page.sees("the plan", lambda m: "Approve all" in m.labels)


async def take(pictures: Path, folder: Path) -> None:
    with trio.fail_after(3 * WITHIN_S):
        async with open_demo(folder) as demo:
            await demo.start()
            await demo.until_printed("Ctrl-C ends takopi")
            async with open_page(demo.url, tell=lambda _: None) as page:
                await talk(page)
                await trio.to_thread.run_sync(photograph, demo.url, pictures / "page.png")
                card = partial(photograph, of="li.message:last-child")
                await trio.to_thread.run_sync(card, demo.url, pictures / "approval.png")
                await draft(page)
                card = partial(photograph, of="li.message:has-text('Revert')", waits_for="Revert")
                await trio.to_thread.run_sync(card, demo.url, pictures / "draft.png")
                await review(page)
                card = partial(
                    photograph, of="li.message:has-text('Approve all')", waits_for="Approve all"
                )
                await trio.to_thread.run_sync(card, demo.url, pictures / "session.png")


def photograph(
    url: str,
    picture: Path,
    *,
    waits_for: str = "Allow once",
    width: int = WIDTH,
    height: int = HEIGHT,
    of: str = "",
) -> None:
    """What a browser shows, or a part of it, once there is a button of that name."""
    with sync_playwright() as playwright:
        # Containers have no user namespaces; the page is our own.
        browser = playwright.chromium.launch(
            executable_path=shutil.which(CHROMIUM), args=NO_SANDBOX
        )
        tab = browser.new_page(
            viewport={"width": width, "height": height}, device_scale_factor=SCALE
        )
        tab.goto(url)
        tab.get_by_role("button", name=waits_for).wait_for()
        if of:
            tab.locator(of).screenshot(path=picture)
        else:
            tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        trio.run(partial(take, Path(sys.argv[1]).resolve(), Path(folder).resolve()))
