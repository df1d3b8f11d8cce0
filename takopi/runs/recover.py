"""After a start: what was running is interrupted and told, what was queued is queued again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import structlog

from takopi.core.ids import Scope
from takopi.kit.clock import now_ms
from takopi.runs.asks import expire_question
from takopi.runs.deliver import interrupted_notice
from takopi.runs.schedule import Schedule
from takopi.runs.workshop import Workshop, put
from takopi.store import inbox, ledger, outbox
from takopi.store.inbox import Received
from takopi.store.ledger import Run

WHY = "takopi was stopped while this was running."

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.runs")


@dataclass(frozen=True, slots=True)
class Recovered:
    """What an earlier process left behind."""

    interrupted: tuple[Run, ...]
    queued: tuple[Run, ...]
    unfinished: tuple[Received, ...]


async def recover(shop: Workshop) -> Recovered:
    """Write down what the last process could not, with one notice for each run it left.

    Before anything is sent: a question of a run that is gone must not be asked any more.
    """

    def change(conn: sqlite3.Connection) -> Recovered:
        for name in shop.transports:
            outbox.recover(conn, transport=name)
        unfinished = inbox.unfinished(conn)
        interrupted = ledger.recover(conn, now_ms=now_ms())
        for run in interrupted:
            if run.scope.transport in shop.transports:
                message = interrupted_notice(shop, run, WHY)
                key = f"interrupted:{run.id}:0"
                put(conn, run.scope, message, kind="notice", run_id=run.id, key=key)
        return Recovered(interrupted, ledger.unfinished(conn), unfinished)

    found = await shop.db.write(change)
    for run in found.interrupted:
        if run.scope.transport in shop.transports:
            questions = await shop.db.read(
                lambda conn, run=run: outbox.open_questions(conn, run.id)
            )
            for key, payload in questions:
                await expire_question(shop, run.scope, key, payload)
            shop.transport(run.scope).wake(run.scope.chat)
    if found.interrupted or found.queued:
        log.info("runs.recovered", interrupted=len(found.interrupted), queued=len(found.queued))
    return found


def resubmit(schedule: Schedule, shop: Workshop, queued: tuple[Run, ...]) -> None:
    """Let what was queued wait again, in its old order."""
    known = {engine.id for engine in shop.engines}
    for run in queued:
        if run.scope.transport in shop.transports and run.engine in known:
            schedule.submit(run)


def chat_of(received: Received) -> Scope:
    """The chat that an update of the inbox came from; its source begins with the transport."""
    return Scope(received.source.partition(":")[0], received.chat_id)
