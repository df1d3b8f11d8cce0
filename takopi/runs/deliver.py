"""How a run ended, as messages that must arrive, committed together with the ending itself."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from takopi.core.context import Context
from takopi.core.events import Completed
from takopi.core.ids import ResumeToken
from takopi.core.outgoing import Attachment, Button, Card, Outgoing
from takopi.kit.clock import now_ms
from takopi.present.cards import FinalStatus, final_parts, fit
from takopi.present.compose import plain, stack
from takopi.runs.buttons import run_button
from takopi.runs.live import Live
from takopi.runs.workshop import Workshop, put
from takopi.store import ledger, scopes
from takopi.store.ledger import Run


def ending_messages(
    live: Live, status: FinalStatus, completed: Completed, *, progress_id: int | None
) -> tuple[Outgoing, ...]:
    """The answer in as many messages as it needs; the progress message goes with the last one."""
    run = live.run
    texts = final_parts(
        status,
        completed.answer,
        engine=run.engine,
        max_units=live.shop.transport(run.scope).max_units,
        elapsed_s=live.elapsed_s,
        error=completed.error,
        model=completed.model or live.progress.model,
        usage=completed.usage,
        footer=live.shop.footer(run.engine, run.context, live.thread),
    )
    max_parts = live.shop.config().limits.max_parts
    shown = texts[:max_parts]
    buttons = _ending_buttons(live, status, completed)
    reply_to = None if run.prompt_ref is None else run.prompt_ref.message_id
    messages = [Outgoing(Card(text), reply_to=reply_to) for text in shown]
    if len(texts) > max_parts:
        caption = plain(f"The whole answer: {len(texts)} messages would be too many.")
        file = Attachment(f"answer-{run.id}.md", completed.answer.encode())
        messages.append(Outgoing(Card(caption), attachment=file, reply_to=reply_to))
    last = messages[-1]
    card = Card(last.card.text, (buttons,) if buttons else ())
    messages[-1] = replace(last, card=card, removes=progress_id)
    return tuple(messages)


def settle(
    conn: sqlite3.Connection,
    run: Run,
    status: FinalStatus,
    completed: Completed,
    *,
    thread: ResumeToken | None,
    messages: tuple[Outgoing, ...],
    keeps_session: bool = True,
    instead: tuple[str, Outgoing] | None = None,
) -> None:
    """Write down how the run ended, and what is to be said about it.

    What comes `instead` of an answer has a key of its own, and does not belong to the run.
    """
    known = ledger.find(conn, run.id)
    if thread is not None and known is not None and known.state == "running":
        ledger.set_thread(conn, run.id, thread, now_ms=now_ms(), model=completed.model)
        if keeps_session:
            _keep_session(conn, run, thread)
    ledger.end(
        conn,
        run.id,
        status,
        now_ms=now_ms(),
        answer=completed.answer,
        error=completed.error,
        usage=completed.usage,
    )
    for index, message in enumerate(messages):
        key = f"{status}:{run.id}:{index}"
        put(conn, run.scope, message, kind="answer", run_id=run.id, key=key)
    if instead is not None:
        put(conn, run.scope, instead[1], kind="notice", key=instead[0])


def _keep_session(conn: sqlite3.Connection, run: Run, thread: ResumeToken) -> None:
    choices = scopes.get(conn, run.scope)
    if choices.thread != thread:
        scopes.put(conn, run.scope, replace(choices, thread=thread))


def _ending_buttons(live: Live, status: FinalStatus, completed: Completed) -> tuple[Button, ...]:
    buttons: list[Button] = []
    if completed.thread_lost:
        buttons.append(run_button("afresh", live.id))
    elif status == "interrupted":
        if live.thread is not None:
            buttons.append(run_button("resume", live.id))
        buttons += [run_button("retry", live.id), run_button("drop", live.id)]
    elif status != "done":
        buttons.append(run_button("retry", live.id))
    if live.progress.changed_files and live.cwd is not None:
        buttons.append(run_button("diff", live.id))
    return tuple(buttons)


def interrupted_notice(shop: Workshop, run: Run, why: str) -> Outgoing:
    """The one notice of a run that did not come to its end, with what can be done about it."""
    begun = run.thread is not None
    text = stack(
        [
            f"interrupted · {run.engine}",
            f"{why} {_first_words(run.prompt)}".strip(),
            shop.footer(run.engine, run.context, run.thread),
        ],
        "\n\n",
    )
    buttons = (
        *((run_button("resume", run.id),) if begun else ()),
        run_button("retry", run.id),
        run_button("drop", run.id),
    )
    return Outgoing(
        Card(fit(text, shop.transport(run.scope).max_units), (buttons,)),
        reply_to=None if run.prompt_ref is None else run.prompt_ref.message_id,
        removes=None if run.progress_ref is None else run.progress_ref.message_id,
    )


def where(context: Context | None, cwd: Path | None) -> str:
    """A few words that say where a run works."""
    if context is None:
        return "" if cwd is None else cwd.name
    return context.project + (f" @ {context.branch}" if context.branch else "")


def _first_words(prompt: str) -> str:
    line = " ".join(prompt.split())
    return f"It was about: {line[:120]}{'…' if len(line) > 120 else ''}" if line else ""
