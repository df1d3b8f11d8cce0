"""/ctx: which project and branch a chat or topic works on."""

from __future__ import annotations

from dataclasses import replace

from takopi.app.commands.choices import Here, change_choices, look, next_run, read_context
from takopi.app.desk import Call, Desk, answer
from takopi.app.pickers import (
    CLEAR,
    MAX_CHOICES,
    PickPress,
    digest,
    find,
    gone,
    offer,
    pick_button,
    settle,
)
from takopi.app.tap import Tap
from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.outgoing import Card
from takopi.present.cards import notice
from takopi.present.compose import prose, stack
from takopi.present.wording import one_line
from takopi.runs.deliver import where
from takopi.store.scopes import Choices

USAGE = "use `/ctx`, `/ctx set <project> @branch` or `/ctx clear`"


async def run(desk: Desk, call: Call) -> None:
    """Show what the scope is bound to, bind it, or unbind it."""
    verb, rest = [*call.args.split(maxsplit=1), "", ""][:2]
    here = await look(desk, call.scope)
    match verb.lower(), bool(rest):
        case (("" | "set"), False):
            await _show(desk, call, here)
        case "set", True:
            context = read_context(desk.config, rest, usage=USAGE)
            await _bind(desk, call, context)
            await answer(desk, call, _bound(here, context))
        case "clear", False:
            await _bind(desk, call, None)
            await answer(desk, call, _bound(here, None))
        case _:
            raise Refused(f"/ctx cannot do that: {one_line(call.args, 60)}", way_out=USAGE)


async def picked(tap: Tap, pick: PickPress) -> None:
    """Bind or unbind the scope by a button."""
    config, scope = tap.desk.config, tap.press.scope
    alias = find(config.projects, pick.value)
    if alias is None and pick.value != CLEAR:
        gone(tap)
        return
    context = None if alias is None else Context(alias)
    here = Here(scope, Choices(), Choices())
    await settle(
        tap,
        pick,
        lambda conn: change_choices(conn, scope, lambda own: replace(own, context=context)),
        said=_bound(here, context),
    )


async def _show(desk: Desk, call: Call, here: Here) -> None:
    projects = list(desk.config.projects)[:MAX_CHOICES]
    buttons = [pick_button(call, "ctx", digest(alias), label=alias) for alias in projects]
    if here.own.context is not None:
        buttons.append(pick_button(call, "ctx", CLEAR, label="Unbind"))
    text = stack([prose(_sentence(desk, here)), prose(USAGE.capitalize() + ".")], "\n\n")
    await offer(desk, call, text, buttons=buttons)


def _sentence(desk: Desk, here: Here) -> str:
    try:
        context = next_run(desk, here).context
    except Refused as error:
        return f"{error.what}. {error.way_out}"
    if here.own.context is not None:
        return f"This {here.name} is bound to `{where(here.own.context, None)}`."
    if here.chat.context is not None:
        return f"This topic works on what its chat is bound to: `{where(context, None)}`."
    if context is not None:
        return f"This {here.name} is bound to nothing and works on `{where(context, None)}`."
    return f"This {here.name} has no project and works in `{desk.shop.start_cwd}`."


async def _bind(desk: Desk, call: Call, context: Context | None) -> None:
    await desk.shop.db.write(
        lambda conn: change_choices(conn, call.scope, lambda own: replace(own, context=context))
    )


def _bound(here: Here, context: Context | None) -> Card:
    if context is None:
        return notice(f"This {here.name} is bound to no project of its own.")
    return notice(f"This {here.name} is bound to `{where(context, None)}`.")
