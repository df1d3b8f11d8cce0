"""`takopi runs`: what has run, runs and waits, read beside the daemon and without a trace."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import starmap
from typing import Annotated

import typer

from takopi.cli.errors import hint, printable
from takopi.config.paths import find_home
from takopi.store import ledger
from takopi.store.ledger import Run
from takopi.store.opening import look_into
from takopi.store.schema import STEPS

BUSY_S = 5.0
SHOWN = 20
_ALL = -1
"""How SQLite spells that there is no limit."""

_HEADS = ("RUN", "STATE", "PROJECT", "ENGINE", "STARTED", "TOOK", "PROMPT")


def runs(
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = SHOWN,
    all_runs: Annotated[bool, typer.Option("--all", help="All that are remembered.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the last runs of all chats, whether takopi runs or not."""
    path = find_home(os.environ).state_file
    found: tuple[Run, ...] = ()
    if path.exists():
        with look_into(path, known=len(STEPS), busy_s=BUSY_S) as conn:
            found = ledger.last(conn, _ALL if all_runs else limit)
    if as_json:
        typer.echo(json.dumps([_as_json(run) for run in found], indent=2, ensure_ascii=False))
    elif found:
        typer.echo(_as_table([_HEADS, *map(_as_row, found)]))
    else:
        hint("nothing has run yet")


def _as_json(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "state": run.state,
        "project": run.context.project if run.context else None,
        "branch": run.context.branch if run.context else None,
        "engine": run.engine,
        "model": run.model,
        "queued": _moment(run.created_ms),
        "started": _moment(run.started_ms),
        "ended": _moment(run.ended_ms),
        "duration_s": _duration_s(run),
        "prompt": _first_line(run.prompt),
        "error": run.error,
    }


def _as_row(run: Run) -> tuple[str, ...]:
    from takopi.present.numbers import duration

    where = ""
    if run.context is not None:
        branch = f" @{run.context.branch}" if run.context.branch else ""
        where = f"{run.context.project}{branch}"
    began = "" if run.started_ms is None else f"{_utc(run.started_ms).astimezone():%m-%d %H:%M}"
    took_s = _duration_s(run)
    took = "" if took_s is None else duration(took_s)
    prompt = _first_line(run.prompt)
    return (str(run.id), run.state, printable(where), run.engine, began, took, prompt)


def _as_table(rows: Sequence[tuple[str, ...]]) -> str:
    from rich.cells import cell_len, set_cell_size

    *widths, _ = (max(map(cell_len, column)) for column in zip(*rows, strict=True))
    lines: list[str] = []
    for *cells, prompt in rows:
        padded = starmap(set_cell_size, zip(cells, widths, strict=True))
        lines.append("  ".join([*padded, prompt]).rstrip())
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        lines = [set_cell_size(line, min(cell_len(line), columns)) for line in lines]
    return "\n".join(lines)


def _first_line(prompt: str) -> str:
    return printable(next(iter(prompt.strip().splitlines()), ""))


def _duration_s(run: Run) -> float | None:
    """How long it took; of one that is running, how long so far."""
    if run.started_ms is None:
        return None
    if run.ended_ms is None:
        return max(0.0, (datetime.now(UTC) - _utc(run.started_ms)).total_seconds())
    return (run.ended_ms - run.started_ms) / 1000


def _moment(ms: int | None) -> str | None:
    return None if ms is None else _utc(ms).isoformat(timespec="milliseconds")


def _utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
