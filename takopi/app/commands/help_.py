"""/start and /help: what can be typed here."""

from __future__ import annotations

from itertools import starmap

from takopi.app.cards import fitted
from takopi.app.commands.table import DESCRIPTIONS
from takopi.app.desk import Call, Desk, answer
from takopi.present.lists import CommandLine, help_text


async def run(desk: Desk, call: Call) -> None:
    """List every command, engine and project."""
    text = help_text(
        list(starmap(CommandLine, DESCRIPTIONS.items())),
        engines=[engine.id for engine in desk.shop.engines],
        projects=list(desk.config.projects),
    )
    await answer(desk, call, fitted(desk, call.scope, text))
