"""Takes the pictures of a plan on the real page: a question with its buttons, and the summary."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from takopi.cli.demo_page import Page, open_page
from tests.demo.process import WITHIN_S, open_demo
from tests.demo.screenshot import photograph

WIDTH, HEIGHT = 520, 620


async def answer(page: Page, question: str, label: str) -> None:
    card = await page.sees(question, lambda m: f"\n{question} of " in m.text and label in m.labels)
    await page.press(card, label)


async def take(folder: Path, home: Path) -> None:
    with trio.fail_after(3 * WITHIN_S):
        async with open_demo(home) as demo:
            await demo.start()
            await demo.until_printed("Ctrl-C ends takopi")
            async with open_page(demo.url, tell=lambda _: None) as page:
                shoot = partial(photograph, demo.url, width=WIDTH, height=HEIGHT)
                await page.say("/plan add JWT authentication")
                await answer(page, "Q1", "As it needs to be")
                await page.sees("Q2", lambda m: "\nQ2 of " in m.text)
                await trio.to_thread.run_sync(
                    partial(shoot, folder / "plan-question.png", waits_for="Safety")
                )
                await answer(page, "Q2", "Safety")
                await answer(page, "Q3", "The API")
                await page.sees("the summary", lambda m: "Plan Ready" in m.text)
                await trio.to_thread.run_sync(
                    partial(
                        shoot,
                        folder / "plan-ready.png",
                        waits_for="✅ Confirm & Start",
                        of="li.message:has-text('Plan Ready')",
                    )
                )


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        trio.run(partial(take, Path(sys.argv[1]).resolve(), Path(home).resolve()))
