"""One run from the moment its lane is free to its ending, which is written down in any case."""

from __future__ import annotations

import math
from pathlib import Path

import structlog
import trio

from takopi.core.errors import StoreFailed, TakopiError
from takopi.core.events import Completed
from takopi.core.ids import ResumeToken
from takopi.core.outgoing import Card, Outgoing
from takopi.core.ports import EngineJob, EngineLimits
from takopi.kit.clock import now_ms
from takopi.kit.cwd import run_cwd
from takopi.present.cards import FinalStatus, notice
from takopi.present.numbers import duration
from takopi.projects.registry import find_project
from takopi.runs.asks import Asks
from takopi.runs.buttons import run_button
from takopi.runs.deliver import ending_messages, settle
from takopi.runs.live import Live
from takopi.runs.signals import Signals
from takopi.runs.tooling import converse
from takopi.store import ledger

FINISH_S = 15.0
"""How long the ending of a run may take when takopi itself is stopping."""

STORE_PAUSE_S = 2.0
"""Pause before an ending is written again that the disk did not take."""

STOPPED = "takopi was stopped while this was running."

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.runs")


async def work(live: Live, asks: Asks, signals: Signals | None = None) -> None:
    """Run to the end, tell how it ended; what goes wrong is this run's ending, not ours."""
    structlog.contextvars.bind_contextvars(run=live.id)
    try:
        status, completed = await _outcome(live, asks, signals)
    except BaseException:
        # takopi is stopping: a cancellation, which a nursery may have made a group of.
        with trio.move_on_after(FINISH_S, shield=True):
            await _interrupt(live)
        raise
    finally:
        asks.forget(live.id)
    taken = None
    if signals is not None and status == "done":
        taken = await _offer(live, completed, signals)
    await finish(live, status, completed, taken)


async def _offer(live: Live, completed: Completed, signals: Signals) -> tuple[str, Card] | None:
    """Let a feature take the answer; what goes wrong with that, and it is shown."""
    try:
        with trio.move_on_after(FINISH_S, shield=True):
            return await signals.take(live.run, completed.answer, thread=live.thread)
    except TakopiError as error:
        log.warning("answer.not_taken", why=error.what)
    return None


async def _interrupt(live: Live) -> None:
    """Tell that the run was stopped on its way; one that has not begun stays queued."""
    if live.began_at is not None:
        stopped = Completed(ok=False, error=STOPPED, answer="\n\n".join(live.said))
        await finish(live, "interrupted", stopped)


async def _outcome(
    live: Live, asks: Asks, signals: Signals | None
) -> tuple[FinalStatus, Completed]:
    try:
        with live.scope:
            completed = await _attempt(live, asks, signals)
            return ("done" if completed.ok else "error"), completed
    except TakopiError as error:
        return "error", Completed(ok=False, error=_sentence(error))
    except Exception as error:  # the last door of a run: it must end, and be told
        log.exception("run.crashed")
        what = f"takopi has a bug: {type(error).__name__}: {error}"
        return "error", Completed(ok=False, error=what)
    return "cancelled", Completed(ok=False, answer="\n\n".join(live.said))


async def _attempt(live: Live, asks: Asks, signals: Signals | None) -> Completed:
    shop, run = live.shop, live.run
    live.cwd = await _find_cwd(live)
    thread = await _find_thread(live, live.cwd)
    cwd = live.cwd
    run_cwd.set(cwd)
    live.run = await shop.db.write(
        lambda conn: ledger.start(conn, run.id, cwd=cwd, now_ms=now_ms())
    )
    live.thread = thread
    live.began_at = live.heard_at = trio.current_time()
    live.turn("working")
    limits = shop.config().limits
    job = EngineJob(
        prompt=live.run.prompt,
        cwd=cwd,
        system=None if signals is None else signals.instruction(run, resumed=thread is not None),
        resume=thread,
        model=run.model,
        limits=EngineLimits(limits.grace_s, limits.ask_s, limits.line_bytes),
    )
    engine = shop.engines.get(run.engine)
    completed: Completed | None = None
    failures: list[Exception] = []
    async with trio.open_nursery() as watchers:
        watchers.start_soon(_watch_silence, live, limits.idle_s)
        watchers.start_soon(_record_thread, live)
        try:
            with trio.move_on_after(limits.run_s or math.inf):
                completed = await converse(live, engine, job, port=asks.port(live))
        except Exception as error:  # ruff: ignore[blind-except] raised below, not as a group
            failures.append(error)
        watchers.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if completed is None:
        said = "\n\n".join(live.said)
        late = f"It took longer than limits.run_s allows ({duration(limits.run_s)})."
        return Completed(ok=False, answer=said, error=late, resume=live.thread)
    live.thread = completed.resume or live.thread
    return completed


async def _find_cwd(live: Live) -> Path:
    """Where the thread was last held, else where its context says, else where takopi began."""
    shop, run = live.shop, live.run
    if run.cwd is not None and await trio.Path(run.cwd).is_dir():
        return run.cwd
    if run.context is None:
        return shop.start_cwd
    if run.context.branch is not None:
        live.turn("preparing worktree")
    project = find_project(shop.config(), run.context.project)
    return await shop.worktrees.prepare(project, run.context.branch)


async def _find_thread(live: Live, cwd: Path) -> ResumeToken | None:
    if live.session_cwd is not None and live.session_cwd != cwd:
        return None
    if live.run.thread is not None or live.waits_for is None:
        return live.run.thread
    waited = live.waits_for
    other = await live.shop.db.read(lambda conn: ledger.find(conn, waited))
    fits = other is not None and other.engine == live.run.engine
    return other.thread if other is not None and fits else None


async def _record_thread(live: Live) -> None:
    """From `Started` on a reply to any message of the run finds its thread."""
    await live.threaded.wait()
    token, model = live.thread, live.progress.model
    if token is None:
        return
    try:
        await live.shop.db.write(
            lambda conn: ledger.set_thread(conn, live.id, token, now_ms=now_ms(), model=model)
        )
    except StoreFailed as error:
        log.warning("thread.not_recorded", why=error.what)  # the ending writes it again


async def _watch_silence(live: Live, idle_s: float) -> None:
    """Say once that nothing has been heard for long; it is the person who decides."""
    while True:
        await trio.sleep_until(live.heard_at + idle_s)
        if live.asking:
            live.heard_at = trio.current_time()
        elif trio.current_time() >= live.heard_at + idle_s:
            break
    text = f"{live.run.engine} has said nothing for {duration(idle_s)}. It goes on unless you"
    card = notice(f"{text} cancel it.", buttons=((run_button("cancel", live.id),),))
    prompt = live.run.prompt_ref
    try:
        await live.shop.tell(
            live.run.scope,
            card,
            reply_to=None if prompt is None else prompt.message_id,
            key=f"silent:{live.id}",
        )
    except StoreFailed as error:
        log.warning("silence.not_told", why=error.what)


async def finish(
    live: Live,
    status: FinalStatus,
    completed: Completed,
    taken: tuple[str, Card] | None = None,
) -> None:
    """Write the ending down, and again while the disk does not take it.

    An answer that was `taken` is not shown: the card that stands for it is.
    """
    while True:
        with trio.move_on_after(FINISH_S, shield=True):
            ref = await live.face.close()
            progress_id = None if ref is None else ref.message_id
            messages: tuple[Outgoing, ...] = ()
            instead = None
            if taken is None:
                messages = ending_messages(live, status, completed, progress_id=progress_id)
            else:
                instead = taken[0], Outgoing(taken[1], removes=progress_id)
            try:
                await live.shop.db.write(
                    lambda conn, messages=messages, instead=instead: settle(
                        conn,
                        live.run,
                        status,
                        completed,
                        thread=live.thread,
                        messages=messages,
                        keeps_session=live.keeps_session,
                        instead=instead,
                    )
                )
                live.shop.transport(live.run.scope).wake(live.run.scope.chat)
                return
            except StoreFailed as error:
                log.error("ending.not_written", why=error.what)
        await trio.sleep(STORE_PAUSE_S)


def _sentence(error: TakopiError) -> str:
    return f"{error.what}\n{error.way_out}" if error.way_out else error.what
