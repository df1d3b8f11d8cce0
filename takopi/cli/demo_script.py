"""A conversation that shows what takopi does; the first step that goes wrong is named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from takopi.cli.demo_page import Page, Shown
from takopi.cli.demo_project import ALIAS, CURE, TOOLS
from takopi.core.errors import TakopiError

BRANCH = "fix/arms"
STEP_S = 30.0
"""How long a step may take; all of them together take a few seconds."""


async def play(page: Page, *, announce: Callable[[str], None], step_s: float = STEP_S) -> None:
    """Have the whole conversation. `announce` is told what comes next."""
    for number, (title, step) in enumerate(STEPS.items(), 1):
        announce(f"\n{number}. {title}\n")
        try:
            with trio.fail_after(step_s):
                await step(page)
        except trio.TooSlowError:
            raise _failed(number, f"{page.awaited} did not come in {step_s:g} seconds") from None
        except TakopiError as error:
            raise _failed(number, error.what) from error


async def _run_plainly(page: Page) -> None:
    prompt = await page.say("steps 3 every 200ms then run python3 -m unittest")
    await _answer(page, prompt, "done", "test_octopus_has_eight_arms", f"ctx: {ALIAS}")


async def _run_on_a_branch(page: Page) -> None:
    prompt = await page.say(f"@{BRANCH} write arms.json: {CURE} then run python3 -m unittest")
    await _answer(page, prompt, "done", "OK", f"ctx: {ALIAS} @ {BRANCH}")


async def _go_on_with_a_reply(page: Page) -> None:
    before = await page.sees(
        "the answer before",
        lambda shown: shown.text.startswith("done · ") and f"@ {BRANCH}" in shown.text,
    )
    prompt = await page.say("what did I ask first?", reply_to=before)
    # The same context and the same thread: both lines are as they were.
    await _answer(page, prompt, "done", "write arms.json", *before.text.splitlines()[-2:])


async def _approve(page: Page) -> None:
    prompt = await page.say("ask approval to run git log --oneline")
    await _allow(page, prompt)
    await _answer(page, prompt, "done", "Open the aquarium", f"ctx: {ALIAS}")


async def _use_a_tool(page: Page) -> None:
    prompt = await page.say(f'/{TOOLS} tool call sample__add {{"a": 40, "b": 2}}')
    await _allow(page, prompt)
    await _answer(page, prompt, "done", "sample__add", "succeeded", "42", f"ctx: {TOOLS}")


async def _cancel(page: Page) -> None:
    prompt = await page.say("steps 2 every 200ms then hang")
    await page.press(await _progress(page, prompt, "step 2"), "Cancel")
    await _answer(page, prompt, "cancelled", f"ctx: {ALIAS}")


async def _allow(page: Page, prompt: int) -> None:
    ask = await page.sees(
        "the question", lambda shown: shown.reply_to == prompt and "Allow once" in shown.labels
    )
    await _progress(page, prompt, "waiting for you · demo")
    await page.press(ask, "Allow once")
    await page.sees(
        "the decision", lambda shown: shown.id == ask.id and shown.text.endswith("allowed once")
    )


STEPS: dict[str, Callable[[Page], Awaitable[None]]] = {
    "A run: its steps as they happen, then the answer. One test fails.": _run_plainly,
    "The same on a branch, in a worktree of its own.": _run_on_a_branch,
    "A reply goes on with the conversation, where it was.": _go_on_with_a_reply,
    "An approval: nothing happens before somebody allows it.": _approve,
    "A tool of an MCP server of yours, asked about in the same way.": _use_a_tool,
    "A cancel: the run ends, and its processes with it.": _cancel,
}


async def _progress(page: Page, prompt: int, part: str) -> Shown:
    """The message that shows the run of this prompt, once it says so."""
    return await page.sees(
        f"the progress “{part}”",
        lambda shown: shown.reply_to == prompt and "Cancel" in shown.labels and part in shown.text,
    )


async def _answer(page: Page, prompt: int, status: str, *parts: str) -> Shown:
    """The answer to this prompt, with all these parts and its resume line."""
    ended = await page.sees(
        "the answer",
        lambda shown: (
            shown.reply_to == prompt
            and shown.text.startswith(("done · ", "error · ", "cancelled · ", "interrupted · "))
        ),
    )
    for part in (f"{status} · demo", *parts, "demo --resume "):
        if part not in ended.text:
            raise TakopiError(f"the answer does not say “{part}”")
    return ended


def _failed(number: int, why: str) -> TakopiError:
    return TakopiError(
        f"step {number} of {len(STEPS)} failed: {why}",
        way_out="run it once more with -v in front: takopi -v demo --once",
    )
