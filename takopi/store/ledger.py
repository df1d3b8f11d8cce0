"""Every run, from the message that asked for it to its ending; one message starts at most one.

`queued → running → done | error | cancelled | interrupted`; what has not started can also end as
`cancelled` or `error`. Any other step is refused.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.events import Usage
from takopi.core.ids import EngineId, InboxId, MessageRef, ResumeToken, RunId, Scope
from takopi.store import threads

RunState = Literal["queued", "running", "done", "error", "cancelled", "interrupted"]
Ending = Literal["done", "error", "cancelled", "interrupted"]

_NEXT: dict[RunState, frozenset[RunState]] = {
    "queued": frozenset({"running", "cancelled", "error"}),
    "running": frozenset({"done", "error", "cancelled", "interrupted"}),
}


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a run is asked to be. Its messages are in the chat of its scope.

    An `interactive` run may answer with questions, which go to `sender_id`.
    """

    scope: Scope
    prompt: str
    engine: EngineId
    model: str | None = None
    thread: ResumeToken | None = None
    context: Context | None = None
    cwd: Path | None = None
    prompt_ref: MessageRef | None = None
    inbox_id: InboxId | None = None
    retry_of: RunId | None = None
    sender_id: int | None = None
    interactive: bool = True


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it stands in the ledger."""

    id: RunId
    state: RunState
    scope: Scope
    prompt: str
    engine: EngineId
    model: str | None
    thread: ResumeToken | None
    context: Context | None
    cwd: Path | None
    prompt_ref: MessageRef | None
    progress_ref: MessageRef | None
    inbox_id: InboxId | None
    retry_of: RunId | None
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    answer: str | None
    error: str | None
    usage: Usage
    sender_id: int | None = None
    interactive: bool = True


def add(conn: sqlite3.Connection, new: NewRun, *, now_ms: int) -> Run:
    """Queue a run, and let its prompt message belong to it.

    Refused when the message of the inbox has started a run before.
    """
    if new.thread is not None and new.thread.engine != new.engine:
        raise ValueError(f"a thread of {new.thread.engine} cannot go on in {new.engine}")
    if new.inbox_id is not None and (other := started_by(conn, new.inbox_id)) is not None:
        raise Refused(f"this message has started run {other} already")
    row = conn.execute(
        "INSERT INTO runs (inbox_id, retry_of, transport, chat_id, topic_id, prompt, project,"
        " branch, cwd, engine, model, thread, created_ms, sender_id, interactive)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            new.inbox_id,
            new.retry_of,
            new.scope.transport,
            new.scope.chat_id,
            new.scope.topic_id,
            new.prompt,
            *threads.context_columns(new.context),
            threads.cwd_column(new.cwd),
            new.engine,
            new.model,
            None if new.thread is None else new.thread.value,
            now_ms,
            new.sender_id,
            new.interactive,
        ),
    ).fetchone()
    run_id = RunId(row["id"])
    if new.prompt_ref is not None:
        _own_message(conn, run_id, new.prompt_ref)
        conn.execute(
            "UPDATE runs SET prompt_message_id = ? WHERE id = ?",
            (new.prompt_ref.message_id, run_id),
        )
    return _get(conn, run_id)


def start(conn: sqlite3.Connection, run_id: RunId, *, cwd: Path, now_ms: int) -> Run:
    """Say that the run is about to work in `cwd`: before its engine starts, never after."""
    _step(conn, run_id, "running")
    conn.execute(
        "UPDATE runs SET started_ms = ?, cwd = ? WHERE id = ?",
        (now_ms, threads.cwd_column(cwd), run_id),
    )
    return _get(conn, run_id)


def end(
    conn: sqlite3.Connection,
    run_id: RunId,
    ending: Ending,
    *,
    now_ms: int,
    answer: str | None = None,
    error: str | None = None,
    usage: Usage | None = None,
) -> Run:
    """Say how the run ended, once."""
    spent = usage or Usage()
    _step(conn, run_id, ending)
    conn.execute(
        "UPDATE runs SET ended_ms = ?, answer = ?, error = ?, input_tokens = ?,"
        " output_tokens = ?, cached_tokens = ?, cost_usd = ? WHERE id = ?",
        (
            now_ms,
            answer,
            error,
            spent.input_tokens,
            spent.output_tokens,
            spent.cached_tokens,
            spent.cost_usd,
            run_id,
        ),
    )
    return _get(conn, run_id)


def set_thread(
    conn: sqlite3.Connection,
    run_id: RunId,
    token: ResumeToken,
    *,
    now_ms: int,
    model: str | None = None,
) -> None:
    """Let the run, and every message that belongs to it, be of this thread from now on.

    `model` is the one that the engine reports; None leaves the one that was asked for.
    """
    run = _get(conn, run_id)
    if run.state != "running":
        raise Refused(f"run {run_id} is {run.state} and cannot get a thread")
    if token.engine != run.engine:
        raise ValueError(f"a run of {run.engine} cannot be of a thread of {token.engine}")
    conn.execute(
        "UPDATE runs SET thread = ?, model = coalesce(?, model) WHERE id = ?",
        (token.value, model, run_id),
    )
    threads.remember(conn, token, context=run.context, cwd=run.cwd, now_ms=now_ms)
    threads.teach_messages(conn, run_id, token=token)


def adopt_thread(conn: sqlite3.Connection, run_id: RunId, token: ResumeToken) -> None:
    """Let a run that has not started continue this thread, if it had none and the engine fits."""
    adopted = conn.execute(
        "UPDATE runs SET thread = ? WHERE id = ? AND engine = ? AND state = 'queued'"
        " AND thread IS NULL",
        (token.value, run_id, token.engine),
    )
    if adopted.rowcount:
        threads.teach_messages(conn, run_id, token=token)


def began_thread(conn: sqlite3.Connection, run: Run) -> bool:
    """Whether the run's thread began with it, as far as is remembered."""
    if run.thread is None:
        return True
    row = conn.execute(
        "SELECT 1 FROM runs WHERE engine = ? AND thread = ? AND id < ? LIMIT 1",
        (run.thread.engine, run.thread.value, run.id),
    ).fetchone()
    return row is None


def set_progress(conn: sqlite3.Connection, run_id: RunId, ref: MessageRef) -> None:
    """Keep which message shows the run's progress, and let it belong to the run."""
    _own_message(conn, run_id, ref)
    conn.execute("UPDATE runs SET progress_message_id = ? WHERE id = ?", (ref.message_id, run_id))


def set_prompt(conn: sqlite3.Connection, run_id: RunId, prompt: str) -> bool:
    """Replace the prompt of a run that has not started; False if it is too late."""
    replaced = conn.execute(
        "UPDATE runs SET prompt = ? WHERE id = ? AND state = 'queued'", (prompt, run_id)
    )
    return replaced.rowcount == 1


def recover(conn: sqlite3.Connection, *, now_ms: int) -> tuple[Run, ...]:
    """After a crash: what was running is interrupted, and returned; what was queued stays so."""
    alive = [run.id for run in unfinished(conn) if run.state == "running"]
    return tuple(end(conn, run_id, "interrupted", now_ms=now_ms) for run_id in alive)


def find(conn: sqlite3.Connection, run_id: RunId) -> Run | None:
    """The run, or None if it never was or has been pruned."""
    row = conn.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
    return None if row is None else _run(row)


def unfinished(conn: sqlite3.Connection) -> tuple[Run, ...]:
    """All runs that are queued or running, in the order they were asked for."""
    rows = conn.execute("SELECT * FROM runs WHERE state IN ('queued', 'running') ORDER BY id")
    return tuple(_run(row) for row in rows)


def last(conn: sqlite3.Connection, count: int, *, chat: Scope | None = None) -> tuple[Run, ...]:
    """The last runs that were asked for, everywhere or in one chat, the newest first."""
    if chat is None:
        rows = conn.execute("SELECT * FROM runs ORDER BY id DESC LIMIT ?", (count,))
    else:
        rows = conn.execute(
            "SELECT * FROM runs WHERE transport = ? AND chat_id = ? ORDER BY id DESC LIMIT ?",
            (chat.transport, chat.chat_id, count),
        )
    return tuple(_run(row) for row in rows)


def started_by(conn: sqlite3.Connection, inbox_id: InboxId) -> RunId | None:
    """The run that a message of the inbox has started, if there is one."""
    row = conn.execute("SELECT id FROM runs WHERE inbox_id = ?", (inbox_id,)).fetchone()
    return None if row is None else RunId(row["id"])


def retried_as(conn: sqlite3.Connection, run_id: RunId) -> RunId | None:
    """The run that tried this one again, if there is one."""
    row = conn.execute(
        "SELECT id FROM runs WHERE retry_of = ? ORDER BY id LIMIT 1", (run_id,)
    ).fetchone()
    return None if row is None else RunId(row["id"])


def _get(conn: sqlite3.Connection, run_id: RunId) -> Run:
    run = find(conn, run_id)
    if run is None:
        raise Refused(f"run {run_id} is not known", way_out="it may be older than limits.keep_days")
    return run


def _step(conn: sqlite3.Connection, run_id: RunId, to: RunState) -> None:
    run = _get(conn, run_id)
    if to not in _NEXT.get(run.state, ()):
        raise Refused(f"run {run_id} is {run.state} and cannot become {to}")
    conn.execute("UPDATE runs SET state = ? WHERE id = ?", (to, run_id))


def _own_message(conn: sqlite3.Connection, run_id: RunId, ref: MessageRef) -> None:
    run = _get(conn, run_id)
    if (ref.transport, ref.chat_id) != (run.scope.transport, run.scope.chat_id):
        raise ValueError(f"run {run_id} is of another chat than {ref}")
    threads.map_message(conn, ref, run_id=run_id)


def _run(row: sqlite3.Row) -> Run:
    scope = Scope(row["transport"], row["chat_id"], row["topic_id"])
    engine = EngineId(row["engine"])

    def ref(message_id: int | None) -> MessageRef | None:
        if message_id is None:
            return None
        return MessageRef(scope.transport, scope.chat_id, message_id)

    return Run(
        id=RunId(row["id"]),
        state=row["state"],
        scope=scope,
        prompt=row["prompt"],
        engine=engine,
        model=row["model"],
        thread=None if row["thread"] is None else ResumeToken(engine, row["thread"]),
        context=threads.context_of(row),
        cwd=threads.cwd_of(row),
        prompt_ref=ref(row["prompt_message_id"]),
        progress_ref=ref(row["progress_message_id"]),
        inbox_id=row["inbox_id"],
        retry_of=row["retry_of"],
        created_ms=row["created_ms"],
        started_ms=row["started_ms"],
        ended_ms=row["ended_ms"],
        answer=row["answer"],
        error=row["error"],
        usage=Usage(
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            cached_tokens=row["cached_tokens"],
            cost_usd=row["cost_usd"],
        ),
        sender_id=row["sender_id"],
        interactive=bool(row["interactive"]),
    )
