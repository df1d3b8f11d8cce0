"""/new: the next message begins a new conversation."""

from __future__ import annotations

from dataclasses import replace

from takopi.app.commands.choices import change_choices
from takopi.app.desk import Call, Desk, answer
from takopi.present.cards import notice


async def run(desk: Desk, call: Call) -> None:
    """Forget the scope's thread; what works in it goes on, and a reply still finds it."""
    for live in desk.schedule.in_scope(call.scope):
        live.keeps_session = False
    await desk.shop.db.write(
        lambda conn: change_choices(conn, call.scope, lambda own: replace(own, thread=None))
    )
    text = "The next message begins a new conversation."
    if desk.config.session_mode == "reply":
        text = f"{text} Here every message does, unless it is a reply."
    await answer(desk, call, notice(text))
