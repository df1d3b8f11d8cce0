"""/cancel: stops one run, which then says so itself."""

from __future__ import annotations

from takopi.app.desk import Call, Desk, answer
from takopi.app.pickers import MAX_CHOICES, PickPress, gone, offer, pick_button
from takopi.app.tap import Tap
from takopi.core.errors import Refused
from takopi.core.ids import MessageRef, RunId
from takopi.present.cards import notice
from takopi.present.compose import prose
from takopi.present.wording import one_line
from takopi.routing.facts import reply_ref
from takopi.runs.buttons import RunPress
from takopi.runs.deliver import where
from takopi.runs.live import Live
from takopi.store import ledger, threads

NOTHING = "Nothing is running here."
ENDED = "This run has ended already."
STOPPING = "This run is being cancelled already."


async def run(desk: Desk, call: Call) -> None:
    """Cancel the run that is replied to, else the only one of the chat, else ask which."""
    if call.args:
        raise Refused(
            f"/cancel knows no {one_line(call.args, 40)}",
            way_out="send `/cancel` alone, or as a reply to a message of the run",
        )
    replied = reply_ref(call.message)
    if replied is not None:
        await _cancel_replied(desk, call, replied)
        return
    lives = [live for live in desk.schedule if live.run.scope.chat == call.scope.chat]
    open_ = [live for live in lives if live.stage != "cancelling"]
    if len(open_) > 1:
        await _ask_which(desk, call, open_)
    elif not open_ or not await desk.schedule.cancel(open_[0].id):
        await answer(desk, call, notice(STOPPING if lives else NOTHING))


async def pressed(tap: Tap, what: RunPress) -> None:
    """Cancel the run of a Cancel button; nothing is asked of the store before it is stopped."""
    live = _find_here(tap, RunId(what.run))
    if live is None:
        return
    tap.answer("Cancelling…")
    if tap.press.ref != live.face.ref:
        # The progress card redraws itself; the notice that an engine is silent does not.
        tap.clear()
    await tap.desk.schedule.cancel(live.id)


async def picked(tap: Tap, pick: PickPress) -> None:
    """Cancel the run that was chosen."""
    if not pick.value.isdecimal():
        gone(tap)
        return
    live = _find_here(tap, RunId(int(pick.value)))
    if live is None:
        return
    tap.answer("Cancelling…")
    tap.edit(notice(f"Cancelling {_line(live)}"))
    await tap.desk.schedule.cancel(live.id)


def _find_here(tap: Tap, run_id: RunId) -> Live | None:
    """The run, if it can be cancelled from here; else the press is told why not."""
    live = tap.desk.schedule.find(run_id)
    if live is None:
        tap.answer(ENDED)
        tap.clear()
        return None
    if not tap.is_from(live.run.scope):
        return None
    if live.stage == "cancelling":
        tap.answer(STOPPING)
        return None
    return live


async def _cancel_replied(desk: Desk, call: Call, replied: MessageRef) -> None:
    run_id = await desk.shop.db.read(lambda conn: threads.run_of(conn, replied))
    if run_id is None:
        raise Refused(
            "that message belongs to no run",
            way_out="reply to a message of the run, or send `/cancel` alone",
        )
    live = desk.schedule.find(run_id)
    if live is not None and live.stage == "cancelling":
        await answer(desk, call, notice(STOPPING))
    elif live is None or not await desk.schedule.cancel(run_id):
        found = await desk.shop.db.read(lambda conn: ledger.find(conn, run_id))
        how = "" if found is None else f" ({found.state})"
        await answer(desk, call, notice(f"Run {run_id} has ended already{how}."))


async def _ask_which(desk: Desk, call: Call, lives: list[Live]) -> None:
    buttons = [
        pick_button(call, "cancel", str(live.id), label=_line(live)) for live in lives[:MAX_CHOICES]
    ]
    text = "Which run?"
    if len(lives) > MAX_CHOICES:
        text = (
            f"Which of the {len(lives)} runs? For one that is not here, reply to it with /cancel."
        )
    await offer(desk, call, prose(text), buttons=buttons)


def _line(live: Live) -> str:
    facts = (str(live.id), live.run.engine, where(live.run.context, None), live.run.prompt)
    return " · ".join(filter(None, (one_line(fact, 40) for fact in facts)))
