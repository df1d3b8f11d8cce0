"""/session: work in turns, each with a plan, an approval and a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from takopi.app.desk import Call, Desk, answer
from takopi.core.errors import Refused
from takopi.present.cards import notice
from takopi.present.wording import one_line
from takopi.routing.directives import skip_directives

if TYPE_CHECKING:
    from takopi.turns.chat import TurnChat
    from takopi.turns.ports import Place

USAGE = (
    "use `/session new <name>`, `/session plan <text>`, `/session execute`, `/session resume` or "
    "`/session status`"
)
VERBS = frozenset({"new", "plan", "execute", "resume", "status"})


async def run(desk: Desk, call: Call) -> None:
    """Begin a session, have a turn planned, show its plan, go on, or say how it stands.

    Directives may stand before or after the verb: they choose the folder.
    """
    front = skip_directives(
        call.args,
        engines=[engine.id for engine in desk.shop.engines],
        projects=desk.config.projects,
        bot_name=desk.shop.transport(call.scope).bot_name,
    )
    verb, rest = [*front.prompt.split(maxsplit=1), "", ""][:2]
    if not front.prompt.strip():
        await answer(desk, call, notice(f"{USAGE.capitalize()}."))
        return
    if verb.lower() not in VERBS:
        raise Refused(f"/session cannot do that: {one_line(call.args, 60)}", way_out=USAGE)
    message = replace(call.message, text=" ".join((*front.words, rest)))
    resolved = await desk.requests.resolve(message)
    turns = await desk.turns.open()
    from takopi.app.sessions import find_place
    from takopi.turns.view import in_chat

    place = await find_place(desk.shop, call.scope, resolved.context, cwd=resolved.cwd_hint)
    try:
        await _do(turns, desk, call, place=place, verb=verb.lower(), text=resolved.prompt.strip())
    except Refused as error:
        raise in_chat(error) from None


async def _do(
    turns: TurnChat, desk: Desk, call: Call, *, place: Place, verb: str, text: str
) -> None:
    if bool(text) != (verb in {"new", "plan"}):
        raise Refused(f"/session {verb} cannot be said like this", way_out=USAGE)
    match verb:
        case "new":
            name = await turns.new(place, text)
            said = f"Session `{name}` has begun. Say what you want: `/session plan <text>`."
            await answer(desk, call, notice(said))
        case "plan":
            await turns.plan(place, text)
        case "execute":
            await turns.execute(place)
        case "resume":
            await turns.resume(place, user_id=call.message.sender_id or call.message.chat_id)
        case _:
            await answer(desk, call, notice(await turns.status(place)))
