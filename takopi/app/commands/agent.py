"""/agent: which engine answers in a chat or topic."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

from takopi.app.commands.choices import Here, change_choices, look, next_engine, next_run
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
from takopi.core.errors import Refused
from takopi.core.ids import EngineId
from takopi.core.outgoing import Card
from takopi.engines.spec import EngineSpec
from takopi.present.cards import notice
from takopi.present.compose import prose, stack
from takopi.store.scopes import Choices

USAGE = "use `/agent`, `/agent <engine>` or `/agent clear`"


async def run(desk: Desk, call: Call) -> None:
    """Choose the engine by its name, go back to the default, or show what can be chosen."""
    here = await look(desk, call.scope)
    words = call.args.lower().removeprefix("/").split()
    if not words:
        await _show(desk, call, here)
        return
    if len(words) > 1:
        raise Refused("that names no engine", way_out=USAGE)
    engine = None if words[0] == CLEAR else _usable(desk, EngineId(words[0]))
    change = _change(desk, here, engine)
    await desk.shop.db.write(change)
    _let_go(desk, here, engine)
    await answer(desk, call, _chosen(desk, here, engine))


async def picked(tap: Tap, pick: PickPress) -> None:
    """Choose the engine by a button."""
    desk = tap.desk
    name = find((each.id for each in desk.shop.engines), pick.value)
    if name is None and pick.value != CLEAR:
        gone(tap)
        return
    engine = None if name is None else _usable(desk, EngineId(name))
    here = await look(desk, tap.press.scope)
    change = _change(desk, here, engine)
    if await settle(tap, pick, change, said=_chosen(desk, here, engine)):
        _let_go(desk, here, engine)


async def _show(desk: Desk, call: Call, here: Here) -> None:
    engines = desk.shop.engines
    usable = [each.id for each in engines if engines.is_installed(each.id)][:MAX_CHOICES]
    buttons = [pick_button(call, "agent", digest(name), label=name) for name in usable]
    if here.own.engine is not None:
        buttons.append(pick_button(call, "agent", CLEAR, label="The default"))
    try:
        now = f"{next_run(desk, here).engine} answers in this {here.name}."
    except Refused as error:
        now = f"{error.what}. {error.way_out}"
    text = stack([prose(now), prose(USAGE.capitalize() + ".")], "\n\n")
    await offer(desk, call, text, buttons=buttons)


def _usable(desk: Desk, engine: EngineId) -> EngineId:
    engines = desk.shop.engines
    found = engines.get(engine).id
    if not engines.is_installed(found):
        entry = engines.catalog.entries.get(found)
        way_out = f"install it: `{entry.install}`" if isinstance(entry, EngineSpec) else ""
        raise Refused(f"{found} is not installed", way_out=way_out)
    return found


def _after(desk: Desk, here: Here, engine: EngineId | None) -> EngineId | None:
    """The engine that answers once this one is chosen; None where there would be none."""
    own = replace(here.own, engine=engine)
    return engine or next_engine(desk, replace(here, own=own))


def _change(
    desk: Desk, here: Here, engine: EngineId | None
) -> Callable[[sqlite3.Connection], None]:
    """A model belongs to its engine, and so does a conversation: neither outlives a change."""
    before, after = next_engine(desk, here), _after(desk, here, engine)

    def choose(own: Choices) -> Choices:
        thread = own.thread if own.thread and own.thread.engine == after else None
        model = own.model if before == after else None
        return replace(own, engine=engine, model=model, thread=thread)

    return lambda conn: change_choices(conn, here.scope, choose)


def _let_go(desk: Desk, here: Here, engine: EngineId | None) -> None:
    """The next message must not wait for a conversation with another engine."""
    after = _after(desk, here, engine)
    for live in desk.schedule.in_scope(here.scope):
        if live.run.engine != after:
            live.keeps_session = False


def _chosen(desk: Desk, here: Here, engine: EngineId | None) -> Card:
    after = _after(desk, here, engine)
    if engine is not None:
        return notice(f"{engine} answers in this {here.name} from now on.")
    if after is None:
        return notice(f"This {here.name} has chosen no engine, and there is no default.")
    return notice(f"The default engine answers in this {here.name} from now on: {after}.")
