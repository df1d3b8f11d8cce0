"""From a message to its engine and back, and from a press of Cancel to the end of the engine.

Two daemons take turns, one with an empty store and one with a long history: while one is measured,
the other's chat gets back what its pace has spent, so that nothing ever waits for a pace.
"""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, field

import trio

from tests.bench.daemon import Daemon, open_daemon
from tests.bench.measure import Row, median
from tests.bench.readings import cpu_s

MESSAGES = 15
CANCELS = 6
FLOODS = 5
EVENTS = 20_000
PAUSE_S = 1.1
"""Of each daemon in turn, so that each has twice that: the two messages of a run are paid back."""

Figures = list[float]


@dataclass(frozen=True)
class Series:
    """What one daemon took, in milliseconds."""

    begun: Figures = field(default_factory=Figures)
    shown: Figures = field(default_factory=Figures)
    answered: Figures = field(default_factory=Figures)
    flooded: Figures = field(default_factory=Figures)
    flood_cpu: Figures = field(default_factory=Figures)
    acknowledged: Figures = field(default_factory=Figures)
    gone: Figures = field(default_factory=Figures)


async def measure(history_rows: int) -> list[Row]:
    new, old, spawned = Series(), Series(), Figures()
    async with open_daemon() as first, open_daemon(history_rows=history_rows) as second:
        both = ((first, new), (second, old))
        for daemon, _ in both:
            await daemon.rig.start()
            # The first run loads what only runs need.
            await daemon.said(await daemon.rig.say("say: warm"), "done")
        await trio.sleep(PAUSE_S)
        for _ in range(MESSAGES):
            for daemon, series in both:
                spawned.append(_bare_spawn_ms(daemon))
                await _message(daemon, series)
                await trio.sleep(PAUSE_S)
        for _ in range(FLOODS):
            for daemon, series in both:
                await _flood(daemon, series)
                await trio.sleep(2 * PAUSE_S)
        for _ in range(CANCELS):
            for daemon, series in both:
                await _cancel(daemon, series)
                await trio.sleep(2 * PAUSE_S)
    return _rows(new, old, spawn_ms=median(spawned), history_rows=history_rows)


async def _message(daemon: Daemon, series: Series) -> None:
    began = trio.current_time()
    prompt = await daemon.rig.say("say: at once")
    final = await daemon.said(prompt, "done")
    progress = await daemon.said(prompt)
    series.begun.append((daemon.stand_ins.born[-1].at_s - began) * 1000)
    series.shown.append((progress.at_s - began) * 1000)
    series.answered.append((final.at_s - began) * 1000)


async def _flood(daemon: Daemon, series: Series) -> None:
    spent_s = cpu_s(daemon.pid)
    final = await daemon.said(await daemon.rig.say(f"flood {EVENTS}"), "done")
    series.flood_cpu.append((cpu_s(daemon.pid) - spent_s) * 1000)
    series.flooded.append((final.at_s - daemon.stand_ins.born[-1].at_s) * 1000)


async def _cancel(daemon: Daemon, series: Series) -> None:
    prompt = await daemon.rig.say("steps 1 then hang")
    progress = await daemon.rig.progress(prompt, "step 1 of 1")
    engine = os.pidfd_open(daemon.stand_ins.born[-1].pid)
    try:
        pressed = await daemon.rig.ada.press(progress, "Cancel")
        with trio.fail_after(10):
            await trio.lowlevel.wait_readable(engine)
            gone_at = trio.current_time()
    finally:
        os.close(engine)
    answered = await pressed.answered()
    series.acknowledged.append((answered.at_s - pressed.at_s) * 1000)
    series.gone.append((gone_at - pressed.at_s) * 1000)
    await daemon.rig.ending(prompt, "cancelled")


def _bare_spawn_ms(daemon: Daemon) -> float:
    """To the same first instruction of the same program, without takopi."""
    began = time.monotonic_ns()
    subprocess.run([daemon.stand_ins.demo, "--version"], check=True, stdout=subprocess.DEVNULL)
    return daemon.stand_ins.last_stamp_ns / 1e6 - began / 1e6


def _rows(new: Series, old: Series, *, spawn_ms: float, history_rows: int) -> list[Row]:
    begun_most = spawn_ms + 16
    rows = [
        Row(
            "update to the engine's first instruction",
            median(new.begun),
            "ms",
            "bare spawn",
            spawn_ms,
            f"at most {begun_most:.1f} ms: 16 more than the floor",
            most=begun_most,
        )
    ]
    figures = (
        ("update to the first message", new.shown, 20.0),
        ("message to final of an instant engine", new.answered, 80.0),
        (f"{EVENTS} events: engine start to final", new.flooded, 400.0),
        (f"{EVENTS} events: CPU of the daemon", new.flood_cpu, 250.0),
        ("cancel: press to acknowledged", new.acknowledged, 50.0),
        ("cancel: press to engine gone", new.gone, 100.0),
    )
    rows += [
        Row(name, median(values), "ms", "bare spawn", spawn_ms, f"at most {most:g} ms", most=most)
        for name, values, most in figures
    ]
    history = (
        old.begun,
        old.shown,
        old.answered,
        old.flooded,
        old.flood_cpu,
        old.acknowledged,
        old.gone,
    )
    table: list[Row] = []
    for row, values in zip(rows, history, strict=True):
        aim = f"no growth with {history_rows} rows"
        grown = Row("  … with history", median(values), "ms", "with none", row.value, aim)
        table += [row, grown]
    return table
