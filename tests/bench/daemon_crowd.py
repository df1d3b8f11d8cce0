"""Many runs at once, each saying a hundred things a second: CPU, memory, lag, and edits in pace.

Lag is seen from outside: beside the crowd, a few slow runs in chats of their own say the time, and
what they say is on the wire of the chat as soon as takopi has taken it in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import trio

from tests.bench.daemon import open_daemon
from tests.bench.measure import Row, against_aim, median
from tests.bench.readings import cpu_s, pss_mib
from tests.bench.stand_ins import trio_time_s
from tests.botapi.api import Request

LASTS_S = 5.0
STEPS = 250
STEP_MS = 20
"""A step is two events: its beginning and its end."""

PROBES = 4
TICKS = 4
TICK_S = 1.2
_MOMENT = re.compile(r"at (\d{10,})")


@dataclass(frozen=True)
class Crowd:
    """What was seen of one crowd."""

    started_s: float
    cpu_share: float
    pss_mib: float
    lags_ms: list[float]
    edits: int
    refused: int
    survivors: int


async def measure() -> list[Row]:
    few, many = await _gather(20), await _gather(50)
    return [
        against_aim("20 runs: all started after", few.started_s, unit="s", aim=3),
        against_aim("20 runs: CPU of the daemon, in cores", few.cpu_share, unit="", aim=0.5),
        against_aim("20 runs: PSS of all that is ours", few.pss_mib, unit="Mi", aim=70),
        against_aim("20 runs: lag, event to chat, median", median(few.lags_ms), unit="ms", aim=250),
        against_aim("20 runs: lag, event to chat, worst", max(few.lags_ms), unit="ms", aim=250),
        _edits(20, few),
        against_aim(
            "50 runs: lag, event to chat, median", median(many.lags_ms), unit="ms", aim=250
        ),
        against_aim("50 runs: CPU of the daemon, in cores", many.cpu_share, unit="", aim=0.5),
        _edits(50, many),
        against_aim("survivors", few.survivors + many.survivors, unit="", aim=0),
    ]


def _edits(runs: int, crowd: Crowd) -> Row:
    return Row(
        f"{runs} runs: edits sent",
        crowd.edits,
        "",
        "events",
        runs * STEPS * 2,
        f"{crowd.refused} of them too early for the chat",
        most=None if crowd.refused == 0 else 0,
    )


async def _gather(runs: int) -> Crowd:
    config = f"[limits]\nmax_runs = {runs + PROBES}\nuser_per_min = 600\n"
    async with open_daemon(config=config, friends=PROBES) as daemon:
        pace = daemon.rig.api.limit_pace()
        await daemon.rig.start()
        began = trio.current_time()
        for _ in range(runs):
            await daemon.rig.say(f"steps {STEPS} every {STEP_MS}ms")
        await daemon.rig.until_so(lambda: len(daemon.stand_ins.born) >= runs)
        started_s = daemon.stand_ins.born[runs - 1].at_s - began
        ticking = [
            await friend.send(friend.chat, f"/codex tick {TICKS} {TICK_S}")
            for friend in daemon.friends
        ]
        spent_s, at = cpu_s(daemon.pid), trio.current_time()
        await trio.sleep(LASTS_S / 2)
        held = pss_mib(daemon.ours)
        await trio.sleep(LASTS_S / 2)
        cpu_share = (cpu_s(daemon.pid) - spent_s) / (trio.current_time() - at)
        for prompt in ticking:
            await daemon.said(prompt, "done")
        edits = daemon.rig.api.sent("editMessageText")
        await daemon.rig.stop()
        return Crowd(
            started_s=started_s,
            cpu_share=cpu_share,
            pss_mib=held,
            lags_ms=_lags_ms(edits),
            edits=len(edits),
            refused=pace.refused,
            survivors=len(daemon.rig.alive()),
        )


def _lags_ms(edits: list[Request]) -> list[float]:
    """From the newest moment in each edit to the edit itself."""
    lags: list[float] = []
    for edit in edits:
        moments = _MOMENT.findall(str(edit.parameters.get("text", "")))
        if moments:
            lags.append((edit.at_s - trio_time_s(int(moments[-1]))) * 1000)
    return lags
