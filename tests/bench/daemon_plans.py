"""From a tap on a card of a plan to the next card, where no model has to be asked."""

from __future__ import annotations

import trio

from tests.bench.daemon import WITHIN_S, Daemon, open_daemon
from tests.bench.measure import Row, against_aim, median
from tests.botapi.api import Request

ROUNDS = 12
PAUSE_S = 2.2
"""Two cards are paid back, so that none waits for the chat's pace."""

NEXT_CARD_MS = 200.0


async def measure() -> list[Row]:
    taken: list[float] = []
    async with open_daemon(config='oneshot.backend = "demo"\n') as daemon:
        await daemon.rig.start()
        await daemon.rig.say("/plan tidy up")
        for number in range(ROUNDS):
            # To the second question and back to the first, and so on.
            here, label = ("Q1 of 2", "A rewrite") if number % 2 == 0 else ("Q2 of 2", "← Back")
            taken.append(await _tap_ms(daemon, here, label))
            await trio.sleep(PAUSE_S)
    return [against_aim("plan: tap to the next card", median(taken), unit="ms", aim=NEXT_CARD_MS)]


async def _tap_ms(daemon: Daemon, here: str, label: str) -> float:
    """Each card is taken from the last message: those before it are closed in their own time."""
    card = await daemon.rig.sees(
        lambda m: here in m.text and bool(m.buttons) and m is daemon.rig.chat.bot_messages[-1]
    )
    began = trio.current_time()
    await daemon.rig.ada.press(card, label)

    def is_next(request: Request) -> bool:
        return (
            request.method == "sendMessage"
            and request.at_s >= began
            and " of 2" in str(request.parameters.get("text", ""))
        )

    shown = await daemon.rig.api.wait_for_request(is_next, within_s=WITHIN_S)
    return (shown.at_s - began) * 1000
