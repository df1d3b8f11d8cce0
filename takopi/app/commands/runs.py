"""/runs: the last runs of a chat, and the answer of each again."""

from __future__ import annotations

import sqlite3
from typing import cast

from takopi.app.cards import fitted
from takopi.app.desk import Call, Desk, answer
from takopi.app.tap import Tap
from takopi.core.ids import RunId
from takopi.core.outgoing import Attachment, Card, Outgoing, Text
from takopi.kit.clock import now_ms
from takopi.present.cards import FinalStatus, final_parts
from takopi.present.compose import plain
from takopi.present.lists import RunLine, runs_list
from takopi.runs.buttons import RunPress, run_button
from takopi.runs.deliver import where
from takopi.runs.workshop import put
from takopi.store import ledger, outbox
from takopi.store.ledger import Run

SHOWN = 10
IN_A_ROW = 5
TOO_OLD = "This run is too old: takopi no longer knows it."


async def run(desk: Desk, call: Call) -> None:
    """List the last runs of the chat, with a button for each that has ended."""
    chat = call.scope.chat
    runs = await desk.shop.db.read(lambda conn: ledger.last(conn, SHOWN, chat=chat))
    buttons = [run_button("show", each.id, f"Show {each.id}") for each in runs if _has_ended(each)]
    rows = [buttons[first : first + IN_A_ROW] for first in range(0, len(buttons), IN_A_ROW)]
    text = runs_list([_line(each) for each in runs])
    await answer(desk, call, fitted(desk, call.scope, text, buttons=rows))


async def show(tap: Tap, what: RunPress) -> None:
    """Send the answer of a run again, once for each list that has the button."""
    desk, run_id = tap.desk, RunId(what.run)
    key = f"show:{tap.key}:{run_id}"
    found, is_shown = await desk.shop.db.read(
        lambda conn: (ledger.find(conn, run_id), outbox.knows(conn, f"{key}:0"))
    )
    if found is None:
        tap.answer(TOO_OLD)
    elif not tap.is_from(found.scope):
        return
    elif not _has_ended(found):
        tap.answer(f"Run {run_id} has not ended yet.")
    elif is_shown:
        tap.answer("It was shown already, below this list.")
    else:
        tap.answer()
        await _send(tap, found, key=key)


async def _send(tap: Tap, run: Run, *, key: str) -> None:
    messages = _answer_again(tap.desk, run, reply_to=tap.press.message_id)
    scope = tap.press.scope

    def change(conn: sqlite3.Connection) -> None:
        for index, message in enumerate(messages):
            # It belongs to the run: a reply to it goes on with the conversation.
            put(conn, scope, message, kind="notice", run_id=run.id, key=f"{key}:{index}")

    await tap.desk.shop.db.write(change)
    tap.desk.shop.transport(scope).wake(scope.chat)


def _answer_again(desk: Desk, run: Run, *, reply_to: int) -> tuple[Outgoing, ...]:
    began, ended = run.started_ms, run.ended_ms
    answered = run.answer or ""
    texts = final_parts(
        cast("FinalStatus", run.state),
        answered,
        engine=run.engine,
        max_units=desk.shop.transport(run.scope).max_units,
        elapsed_s=None if began is None or ended is None else (ended - began) / 1000,
        error=run.error,
        model=run.model,
        usage=run.usage,
        footer=_footer(desk, run),
    )
    max_parts = desk.config.limits.max_parts
    messages = [Outgoing(Card(text), reply_to=reply_to) for text in texts[:max_parts]]
    if len(texts) > max_parts:
        caption = plain(f"The whole answer: {len(texts)} messages would be too many.")
        file = Attachment(f"answer-{run.id}.md", answered.encode())
        messages.append(Outgoing(Card(caption), attachment=file, reply_to=reply_to))
    return tuple(messages)


def _footer(desk: Desk, run: Run) -> Text:
    # The engine may have gone with its plugin; what it said has not.
    known = {engine.id for engine in desk.shop.engines}
    thread = run.thread if run.engine in known else None
    return desk.shop.footer(run.engine, run.context, thread)


def _line(run: Run) -> RunLine:
    age_s = (now_ms() - run.created_ms) / 1000
    context = where(run.context, run.cwd)
    return RunLine(run.id, run.state, run.engine, run.prompt, age_s, context)


def _has_ended(run: Run) -> bool:
    return run.state not in {"queued", "running"}
