"""/status: how takopi is, and which of its engines ask before they act."""

from __future__ import annotations

import trio

import takopi
from takopi.app.cards import fitted
from takopi.app.desk import Call, Desk, answer
from takopi.engines.registry import Engines
from takopi.engines.spec import EngineSpec
from takopi.present.lists import Condition, EngineLine, status
from takopi.present.wording import one_line

REASON_CHARS = 200


async def run(desk: Desk, call: Call) -> None:
    """Show the version, the engines, the runs and the last poll."""
    engines, polls = desk.shop.engines, desk.last_poll_s()
    condition = Condition(
        version=takopi.__version__,
        up_s=trio.current_time() - desk.started_at,
        # It looks for programs on the disk.
        engines=await trio.to_thread.run_sync(_engine_lines, engines),
        running=desk.schedule.running,
        queued=desk.schedule.queued,
        max_runs=desk.config.limits.max_runs,
        polled_s=polls.get(call.scope.transport),
        polls=call.scope.transport in polls,
        mcp=[] if desk.shop.mcp is None else desk.shop.mcp.describe(),
    )
    await answer(desk, call, fitted(desk, call.scope, status(condition)))


def _engine_lines(engines: Engines) -> list[EngineLine]:
    lines: list[EngineLine] = []
    for engine in engines:
        entry = engines.catalog.entries.get(engine.id)
        problem = ""
        if not engines.is_installed(engine.id):
            way_out = f": `{entry.install}`" if isinstance(entry, EngineSpec) else ""
            problem = f"not installed{way_out}"
        lines.append(EngineLine(engine.id, engines.asks(engine.id), problem))
    broken = (
        EngineLine(one_line(each.name, REASON_CHARS), asks=False, problem=_reason(each.reason))
        for each in engines.broken
    )
    return [*lines, *broken]


def _reason(reason: str) -> str:
    return one_line(reason, REASON_CHARS) or "it could not be loaded"
