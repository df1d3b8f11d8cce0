"""/draft: whether messages are put together here before they are sent."""

from __future__ import annotations

from dataclasses import replace

from takopi.app.commands.choices import change_choices, look
from takopi.app.desk import Call, Desk, answer
from takopi.core.errors import Refused
from takopi.drafts.service import is_drafting
from takopi.present.cards import notice
from takopi.present.wording import one_line

USAGE = "use `/draft on`, `/draft off` or `/draft show`"
ON = "From now on, messages here are put together into one prompt. Press Run to send it."
OFF = "Messages here run at once."


async def run(desk: Desk, call: Call) -> None:
    """Switch it on or off, show the draft, or say how it is."""
    here = await look(desk, call.scope)
    match call.args.lower():
        case "":
            said = ON if is_drafting(here.own) else OFF
            await answer(desk, call, notice(f"{said} {USAGE.capitalize()}."))
        case "on":
            await _set(desk, call, drafting=True)
            await answer(desk, call, notice(ON))
        case "off":
            if here.own.target is not None:
                raise Refused(
                    f"what is said in this {here.name} goes to tmux, and only when it is right",
                    way_out="`/detach` unbinds it",
                )
            await _set(desk, call, drafting=False)
            await answer(desk, call, notice(OFF))
        case "show":
            if not await desk.drafts.show(call.scope):
                raise Refused("there is no draft here", way_out=USAGE)
        case _:
            raise Refused(f"/draft cannot do that: {one_line(call.args, 60)}", way_out=USAGE)


async def _set(desk: Desk, call: Call, *, drafting: bool) -> None:
    await desk.shop.db.write(
        lambda conn: change_choices(conn, call.scope, lambda own: replace(own, drafting=drafting))
    )
