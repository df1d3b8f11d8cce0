"""/screen: what the bound tmux window shows."""

from __future__ import annotations

from takopi.app.cards import fitted
from takopi.app.desk import Call, Desk, answer
from takopi.core.errors import Refused
from takopi.core.outgoing import Card
from takopi.present.cards import notice
from takopi.present.compose import pre

LINES = 40
"""As many of the last lines as a phone shows without much scrolling."""


async def run(desk: Desk, call: Call) -> None:
    """Show the last lines of the window."""
    bindings = desk.drafts.bindings
    target = await bindings.target(call.scope)
    if target is None:
        raise Refused("nothing is bound to tmux here", way_out="`/attach` shows what can be")
    await answer(desk, call, _shown(desk, call, await bindings.screen(call.scope, target)))


def _shown(desk: Desk, call: Call, screen: str) -> Card:
    lines = [line.rstrip() for line in screen.rstrip().splitlines()]
    if not lines:
        return notice("The window is empty.")
    return fitted(desk, call.scope, pre("\n".join(lines[-LINES:])))
