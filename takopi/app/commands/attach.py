"""/attach: which tmux window the prompts of a chat or topic go to."""

from __future__ import annotations

from takopi.app.commands.choices import look
from takopi.app.desk import Call, Desk, answer
from takopi.app.pickers import MAX_CHOICES, PickPress, digest, gone, offer, pick_button, settle
from takopi.app.tap import Tap
from takopi.core.errors import Refused
from takopi.core.outgoing import Card
from takopi.drafts.bindings import bind
from takopi.drafts.tmux import Target, Window
from takopi.present.cards import notice
from takopi.present.compose import prose

USAGE = "use `/attach <session>` or `/attach <session:window>`"


async def run(desk: Desk, call: Call) -> None:
    """Bind the scope to the window that is named, or show those that there are."""
    bindings = desk.drafts.bindings
    if call.args:
        target = (await bindings.window(call.args)).target
        await desk.shop.db.write(lambda conn: bind(conn, call.scope, target))
        bindings.attached(call.scope, target)
        await answer(desk, call, _bound(target))
        return
    windows = await bindings.windows()
    if not windows:
        raise Refused("no tmux window is open", way_out="start one with `tmux new -s work`")
    here = await look(desk, call.scope)
    now = await bindings.target(call.scope)
    said = "bound to no tmux window" if now is None else f"bound to the tmux window `{now.label}`"
    text = prose(f"This {here.name} is {said}. Choose one, or {USAGE}.")
    buttons = [
        pick_button(call, "attach", digest(str(window.target)), label=_label(window))
        for window in windows[:MAX_CHOICES]
    ]
    await offer(desk, call, text, buttons=buttons)


async def picked(tap: Tap, pick: PickPress) -> None:
    """Bind the scope by a button."""
    bindings, scope = tap.desk.drafts.bindings, tap.press.scope
    targets = [window.target for window in await bindings.windows()]
    target = next((each for each in targets if digest(str(each)) == pick.value), None)
    if target is None:
        gone(tap)
        return
    if await settle(tap, pick, lambda conn: bind(conn, scope, target), said=_bound(target)):
        bindings.attached(scope, target)


def _label(window: Window) -> str:
    return f"{window.target.label} {window.name}"


def _bound(target: Target) -> Card:
    return notice(
        f"Bound to the tmux window `{target.label}`. What is said here is put together into one"
        " prompt, and Run types it in there."
    )
