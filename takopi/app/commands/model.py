"""/model: which model the engine of a chat or topic uses."""

from __future__ import annotations

from dataclasses import replace

from takopi.app.commands.choices import Here, change_choices, look, next_run
from takopi.app.desk import Call, Desk, answer
from takopi.app.pickers import CLEAR, PickPress, digest, find, gone, offer, pick_button, settle
from takopi.app.tap import Tap
from takopi.core.errors import Refused
from takopi.core.ids import EngineId, Scope
from takopi.core.outgoing import Card
from takopi.present.cards import notice
from takopi.present.compose import prose, stack
from takopi.store import ledger

MAX_CHARS = 200
OFFERED = 6
RECENT_RUNS = 50
USAGE = "use `/model`, `/model <name>` or `/model clear`"


async def run(desk: Desk, call: Call) -> None:
    """Choose the model by its name, go back to the engine's own, or show what was used."""
    here = await look(desk, call.scope)
    engine = next_run(desk, here).engine
    if not call.args:
        await _show(desk, call, here, engine=engine)
        return
    model = None if call.args.lower() == CLEAR else _checked(call.args)
    await desk.shop.db.write(
        lambda conn: change_choices(conn, call.scope, lambda own: replace(own, model=model))
    )
    await answer(desk, call, _chosen(here, engine, model=model))


async def picked(tap: Tap, pick: PickPress) -> None:
    """Choose the model by a button."""
    desk, scope = tap.desk, tap.press.scope
    here = await look(desk, scope)
    engine = next_run(desk, here).engine
    model = find(await _known_models(desk, scope, engine=engine), pick.value)
    if model is None and pick.value != CLEAR:
        gone(tap)
        return
    await settle(
        tap,
        pick,
        lambda conn: change_choices(conn, scope, lambda own: replace(own, model=model)),
        said=_chosen(here, engine, model=model),
    )


async def _show(desk: Desk, call: Call, here: Here, *, engine: EngineId) -> None:
    known = await _known_models(desk, call.scope, engine=engine)
    buttons = [pick_button(call, "model", digest(name), label=name) for name in known]
    now = f"{engine} uses the model of its own settings in this {here.name}."
    if here.own.model is not None:
        now = f"{engine} uses `{here.own.model}` in this {here.name}."
        buttons.append(pick_button(call, "model", CLEAR, label="The engine's own"))
    text = stack([prose(now), prose(USAGE.capitalize() + ".")], "\n\n")
    await offer(desk, call, text, buttons=buttons)


async def _known_models(desk: Desk, scope: Scope, *, engine: EngineId) -> list[str]:
    """The configured model, then those that the engine used in this chat, the latest first."""
    runs = await desk.shop.db.read(lambda conn: ledger.last(conn, RECENT_RUNS, chat=scope))
    settings = desk.config.engines.get(engine)
    configured = [settings.model] if settings is not None and settings.model else []
    used = [run.model for run in runs if run.engine == engine and run.model]
    return list(dict.fromkeys([*configured, *used]))[:OFFERED]


def _checked(name: str) -> str:
    """It becomes an argument of a program: no options, no second word."""
    if len(name) > MAX_CHARS or not name.isprintable() or " " in name or name.startswith("-"):
        raise Refused("that cannot be the name of a model", way_out=USAGE)
    return name


def _chosen(here: Here, engine: EngineId, *, model: str | None) -> Card:
    if model is None:
        return notice(f"{engine} uses the model of its own settings in this {here.name}.")
    return notice(f"{engine} uses `{model}` in this {here.name} from now on.")
