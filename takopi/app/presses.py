"""What every button does: answered at once, one effect for each press, and none when it is late.

A chat shows one answer to a press. So whether it is late is found out first, from memory or with
one look into the store, and whatever takes longer comes after the answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import msgspec
import trio

from takopi.app import interviewing
from takopi.app.cards import DIFF_BYTES, send_diff
from takopi.app.commands import agent, attach, cancel, ctx, model, runs, trigger, worktrees
from takopi.app.desk import Desk
from takopi.app.gather import reread_whole
from takopi.app.pickers import PICK, PickKind, PickPress, decide
from takopi.app.tap import Tap, attended
from takopi.core.errors import Refused
from takopi.core.ids import InboxId, RunId
from takopi.core.outgoing import Button, Card, Outgoing
from takopi.drafts.machine import PRESS as DRAFT
from takopi.interview.view import INTERVIEW
from takopi.present.cards import decided, notice
from takopi.present.units import length
from takopi.runs.buttons import ASK, INBOX, RUN, InboxPress, RunPress
from takopi.runs.deliver import where
from takopi.runs.recover import chat_of
from takopi.store import inbox, ledger, outbox
from takopi.store.inbox import Received
from takopi.store.ledger import Run
from takopi.telegram.buttons import Registry
from takopi.turns.buttons import REVIEW

PICKS: Mapping[PickKind, Callable[[Tap, PickPress], Awaitable[None]]] = {
    "agent": agent.picked,
    "attach": attach.picked,
    "cancel": cancel.picked,
    "ctx": ctx.picked,
    "model": model.picked,
    "trigger": trigger.picked,
    "worktrees": worktrees.picked,
}
AGAIN: dict[Literal["retry", "resume", "afresh"], str] = {
    "retry": "tried again as run",
    "resume": "goes on as run",
    "afresh": "started afresh as run",
}


def register(desk: Desk) -> Registry:
    """Every button that there is, and who hears of it."""
    registry = Registry()
    registry.add(RUN, attended(desk, _press_run))
    registry.add(ASK, desk.asks.press)
    registry.add(DRAFT, desk.drafts.press)
    registry.add(INTERVIEW, attended(desk, interviewing.pressed))
    registry.add(REVIEW, desk.turns.press)
    registry.add(INBOX, attended(desk, _press_inbox))
    registry.add(PICK, attended(desk, _pick))
    registry.add(worktrees.WORKTREE, attended(desk, worktrees.pressed))
    return registry


async def _pick(tap: Tap, pick: PickPress) -> None:
    await PICKS[pick.what](tap, pick)


async def _press_run(tap: Tap, what: RunPress) -> None:
    match what.what:
        case "cancel":
            await cancel.pressed(tap, what)
        case "show":
            await runs.show(tap, what)
        case "diff":
            await _show_diff(tap, RunId(what.run))
        case "drop":
            await _drop(tap, RunId(what.run))
        case "retry" | "resume" | "afresh":
            await _try_again(tap, RunId(what.run), how=what.what)


async def _try_again(tap: Tap, run_id: RunId, *, how: Literal["retry", "resume", "afresh"]) -> None:
    desk = tap.desk
    run = await _find_undecided(tap, run_id)
    if run is None:
        return
    desk.shop.engines.get(run.engine)
    tap.answer()
    new = await desk.requests.again(run_id, how=how)
    await desk.shop.db.write(lambda conn: decide(conn, _interrupted(run_id)))
    await _say_decided(tap, run_id, f"{AGAIN[how]} {new.id}")


async def _drop(tap: Tap, run_id: RunId) -> None:
    run = await _find_undecided(tap, run_id)
    if run is None:
        return
    tap.answer()
    if await tap.desk.shop.db.write(lambda conn: decide(conn, _interrupted(run_id))):
        await _say_decided(tap, run_id, "dropped")


async def _find_undecided(tap: Tap, run_id: RunId) -> Run | None:
    """The run, if nobody has decided what becomes of it; else the press is told why not."""

    def look(conn: sqlite3.Connection) -> tuple[Run | None, bool]:
        run = ledger.find(conn, run_id)
        if run is None:
            return None, False
        if run.state == "interrupted" and not outbox.knows(conn, _interrupted(run_id)):
            return run, True
        return run, ledger.retried_as(conn, run_id) is not None

    run, is_decided = await tap.desk.shop.db.read(look)
    if run is None:
        tap.answer(runs.TOO_OLD)
        tap.clear()
        return None
    if not tap.is_from(run.scope):
        return None
    if is_decided:
        tap.too_late()
        return None
    return run


def _interrupted(run_id: RunId) -> str:
    """Under what the notice of an interrupted run was sent: it is closed by the decision."""
    return f"interrupted:{run_id}:0"


async def _say_decided(tap: Tap, run_id: RunId, line: str) -> None:
    """Let the pressed card say what was decided; only its Diff can still be pressed."""
    message_id = tap.press.message_id
    payload = await tap.desk.shop.db.read(
        lambda conn: outbox.payload_of(conn, run_id, message_id=message_id)
    )
    if payload is None:
        tap.clear()
        return
    sent = msgspec.msgpack.decode(payload, type=Outgoing)
    left = tuple(button for row in sent.card.buttons for button in row if _is_diff(button))
    text = decided(sent.card, line).text
    room = tap.desk.shop.transport(tap.press.scope).max_units
    if sent.attachment is not None or length(text.text) > room:
        text = sent.card.text
    tap.edit(Card(text, (left,) if left else ()))


def _is_diff(button: Button) -> bool:
    press = RUN.decode(button.data)
    return press is not None and press.what == "diff"


async def _show_diff(tap: Tap, run_id: RunId) -> None:
    desk = tap.desk
    run = await desk.shop.db.read(lambda conn: ledger.find(conn, run_id))
    if run is None:
        tap.answer(runs.TOO_OLD)
        return
    if not tap.is_from(run.scope):
        return
    tap.answer()
    if run.cwd is None or not await trio.Path(run.cwd).is_dir():
        raise Refused(f"the folder of run {run_id} is no longer there")
    diff = await desk.shop.worktrees.diff(run.cwd, limit_bytes=DIFF_BYTES)
    await send_diff(tap, where(run.context, run.cwd), diff, run_id=run_id)


async def _press_inbox(tap: Tap, what: InboxPress) -> None:
    desk, inbox_id = tap.desk, InboxId(what.inbox)
    key = f"stale:{inbox_id}"

    def look(conn: sqlite3.Connection) -> tuple[Received | None, bool]:
        is_open = outbox.knows(conn, key) and ledger.started_by(conn, inbox_id) is None
        return inbox.find(conn, inbox_id), is_open

    received, is_open = await desk.shop.db.read(look)
    if received is not None and not tap.is_from(chat_of(received)):
        return
    if received is None or not is_open:
        tap.too_late()
        return
    tap.answer()
    said = "Dropped: this does not run."
    if what.what == "run":
        message = await reread_whole(desk, received)
        if message is None:
            raise Refused("this message cannot be read any more", way_out="send it again")
        await desk.intake.start(message, inbox_id)
        said = "It was late, and runs now."
    if await desk.shop.db.write(lambda conn: decide(conn, key)):
        tap.edit(notice(said))
