"""A draft on the page survives a kill after any commit, in one card that can be pressed."""

from __future__ import annotations

import random
from contextlib import suppress

import msgspec
import trio

from takopi.cli.demo_page import Page, open_page
from takopi.core.errors import TakopiError
from takopi.core.outgoing import Card
from takopi.drafts.machine import PRESS
from tests.conftest import Figures
from tests.e2e.test_both import ADDRESS, BOTH
from tests.faults.promises import LONG
from tests.faults.rig import PATIENT, WITHIN_S, FaultRig

STRIDES = (1,) if LONG else (3, 4, 5)
FEWEST_DEATHS = 10 if LONG else 2


async def address(rig: FaultRig, *, after: int) -> str | None:
    """Where the page of the daemon is that was just started; None if it died before it said so."""
    process = rig.process
    assert process is not None
    await rig.until_so(
        lambda: process.poll() is not None or ADDRESS.search(rig.log, after) is not None
    )
    found = ADDRESS.search(rig.log, after)
    return None if found is None else found[0]


def is_known(rig: FaultRig, said: str) -> bool:
    """Whether the page has taken this message."""
    cards = rig.rows("SELECT card FROM web_messages WHERE author = 'person'")
    return any(msgspec.msgpack.decode(card, type=Card).text.text == said for (card,) in cards)


def is_quiet(rig: FaultRig) -> bool:
    return rig.is_over and not rig.rows("SELECT id FROM draft_jobs")


def open_cards(rig: FaultRig) -> list[int]:
    """The messages of the page on which an open draft can be pressed."""
    drafts = {row[0] for row in rig.rows("SELECT id FROM drafts")}
    found: list[int] = []
    for number, data in rig.rows("SELECT id, card FROM web_messages WHERE NOT deleted ORDER BY id"):
        card = msgspec.msgpack.decode(data, type=Card)
        presses = [PRESS.decode(button.data) for row in card.buttons for button in row]
        if any(press is not None and press.draft in drafts for press in presses):
            found.append(number)
    return found


async def go_on(page: Page, rig: FaultRig, said: str) -> None:
    """Say it, unless it was said, and press Run, twice, once that stands below it."""
    if not is_known(rig, said):
        await page.say(said)
    ran = rig.rows("SELECT 1 FROM runs WHERE prompt = ?", f"- {said}")
    if not ran:
        card = await page.sees("Run", lambda m: m.text == f"- {said}" and "Run" in m.labels)
        await page.press(card, "Run")
        with suppress(TakopiError):
            # The page refuses it by itself, where the card has changed in between.
            await page.press(card, "Run")
    await rig.until_so(
        lambda: not rig.rows("SELECT id FROM drafts") and is_quiet(rig), lambda: rig.log[-3000:]
    )


async def is_killed(rig: FaultRig, said: str, *, commits: int) -> bool:
    """Draft and run it with a daemon that dies at this commit; False if it does that alive."""
    after = len(rig.log)
    rig.launch("--die-at-commit", str(commits))
    url = await address(rig, after=after)
    process = rig.process
    assert process is not None
    try:
        if url is not None:
            with trio.fail_after(WITHIN_S):
                async with open_page(url, tell=lambda _line: None) as page:
                    await go_on(page, rig, said)
            await rig.kill()
            return False
    except* TakopiError:
        # The page is gone, because takopi is.
        await rig.until_so(lambda: process.poll() is not None, lambda: rig.log[-3000:])
    rig.process = None
    return True


async def test_kill_after_any_commit_leaves_one_card_on_the_page_and_runs_the_draft_once(
    rig: FaultRig, figures: Figures
) -> None:
    rig.configure(f'{PATIENT}drafts.backend = "demo"\n{BOTH}')
    commits = rounds = 0
    is_dead = True
    await rig.start()
    url = await address(rig, after=0)
    assert url is not None
    async with open_page(url, tell=lambda _line: None) as page:
        await page.say("/draft on")
        with trio.fail_after(WITHIN_S):
            await page.sees("drafting", lambda m: "put together" in m.text)
    await rig.stop()
    while is_dead:
        rounds += 1
        commits += random.choice(STRIDES)
        said = f"w{rounds}"
        is_dead = await is_killed(rig, said, commits=commits)
        after = len(rig.log)
        await rig.start()
        await rig.until_so(lambda: is_quiet(rig), lambda: rig.log[-3000:])
        url = await address(rig, after=after)
        assert url is not None
        if rig.rows("SELECT id FROM drafts"):
            await rig.until_so(lambda: bool(open_cards(rig)), lambda: rig.log[-3000:])
            assert open_cards(rig) == [row[0] for row in rig.rows("SELECT card_id FROM drafts")]
        with trio.fail_after(WITHIN_S):
            async with open_page(url, tell=lambda _line: None) as page:
                await go_on(page, rig, said)
        await rig.stop()
    prompts = [row[0] for row in rig.rows("SELECT prompt FROM runs ORDER BY id")]
    assert prompts == [f"- w{number}" for number in range(1, rounds + 1)]
    assert rounds > FEWEST_DEATHS
    figures("F2", page_commits=commits, page_deaths=rounds - 1, lost=0, twice=0)
