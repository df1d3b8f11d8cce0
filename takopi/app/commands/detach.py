"""/detach: the prompts of a chat or topic go to no tmux window any more."""

from __future__ import annotations

from takopi.app.desk import Call, Desk, answer
from takopi.core.errors import Refused
from takopi.present.cards import notice


async def run(desk: Desk, call: Call) -> None:
    """Unbind the scope and clear its draft."""
    target = await desk.drafts.bindings.detach(call.scope)
    if target is None:
        raise Refused("nothing is bound to tmux here", way_out="`/attach` shows what can be")
    await answer(desk, call, notice(f"Detached from `{target.label}`. The draft is cleared."))
