"""F23: send, tap, cancel, crash, restart and redeliver in any order, and the promises hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import trio
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.botapi.chats import Message
from tests.conftest import Figures
from tests.faults.promises import LONG
from tests.faults.rig import WITHIN_S, FaultRig, endings, open_fault_rig
from tests.faults.test_taps import NOT_MODIFIED
from tests.kit.processes import until_gone

EXAMPLES, STEPS = (30, 30) if LONG else (5, 12)
CHATS = 3
REPEATED = "(repeated)\n"
STATUSES = ("done", "error", "cancelled", "interrupted")
WORK = (
    "",
    " then hang",
    " then steps 3 every 100ms",
    " then fail: no luck",
    " then ask approval to append starts.txt: {name}+",
    " then fork, stubborn, hang",
)
"""What a prompt asks for, after the engine has written down that it began."""

ENDLESS = ("hang", "+")
"""How prompts end that wait for ever: in the end, what is left of them is cancelled."""

BEGIN_S = 2.0
"""How long a crash waits for engines to be at work: some never begin, if they were cancelled."""

SETTLE_S = 1.0


class Run(NamedTuple):
    """A row of the ledger."""

    id: int
    prompt: str
    state: str
    inbox: int | None
    retry_of: int | None

    @property
    def name(self) -> str | None:
        """What its engine writes down first; one that was resumed is only told to continue."""
        return self.prompt.split()[2] if self.prompt.startswith("append") else None


class Button(NamedTuple):
    """A button that there once was; it may be long gone."""

    card: Message
    label: str
    data: str


@dataclass(frozen=True)
class Host:
    """Opens the takopi of each example in the test's own Trio, and counts what is done to it."""

    nursery: trio.Nursery
    done: Counter[str] = field(default_factory=Counter[str])

    async def open(self) -> tuple[FaultRig, trio.Event]:
        closing = trio.Event()
        rig: FaultRig = await self.nursery.start(self.serve, closing)
        return rig, closing

    async def serve(
        self,
        closing: trio.Event,
        *,
        task_status: trio.TaskStatus[FaultRig] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        with TemporaryDirectory() as folder:
            async with open_fault_rig(Path(folder)) as rig:
                task_status.started(rig)
                await closing.wait()


class AnyOrder(RuleBasedStateMachine):
    """People, a power switch, and one takopi between them. Its rules run in a thread."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.done = host.done
        self.prompts: dict[str, Message] = {}
        self.buttons: dict[tuple[int, int, str], Button] = {}
        self.allowed: set[Message] = set()
        self.rig, self.closing = trio.from_thread.run(host.open)
        self.chats = trio.from_thread.run_sync(self.rig.open_chats, CHATS)
        # A late tap takes the buttons off a card that has none left or is gone: no mistake.
        self.rig.api.expect_rejection(NOT_MODIFIED, "message to edit not found")
        trio.from_thread.run(self.rig.start, "--quick")

    @property
    def is_up(self) -> bool:
        return self.rig.process is not None

    @initialize(work=st.sampled_from(WORK), crashes=st.sampled_from((True, False)))
    def begin(self, work: str, crashes: bool) -> None:
        """There is always something to lose, and often it is at stake at once."""
        trio.from_thread.run(self._send, 0, work)
        if crashes:
            self.crash(at_work=True)

    @rule(chat=st.integers(0, CHATS - 1), work=st.sampled_from(WORK))
    def send(self, chat: int, work: str) -> None:
        trio.from_thread.run(self._send, chat, work)

    async def _send(self, chat: int, work: str) -> None:
        name = f"n{len(self.prompts)}"
        text = f"append starts.txt: {name}{work.format(name=name)}"
        person = self.rig.api.person(self.chats[chat].id)
        self.prompts[name] = await person.send(self.chats[chat], text)
        self.done["messages"] += 1

    @rule(index=st.integers(0, 999), times=st.integers(1, 3))
    def tap(self, index: int, times: int) -> None:
        """Any button that there ever was, once or as fast as a finger can."""
        trio.from_thread.run(self._tap, index, times)

    async def _tap(self, index: int, times: int) -> None:
        self._look()
        if self.buttons:
            button = [*self.buttons.values()][index % len(self.buttons)]
            await self._press(button, times=times)

    @rule(index=st.integers(0, 99), typed=st.booleans())
    def cancel(self, index: int, typed: bool) -> None:
        trio.from_thread.run(self._cancel, index, typed)

    async def _cancel(self, index: int, typed: bool) -> None:
        self._look()
        prompt = [*self.prompts.values()][index % len(self.prompts)]
        cards = [
            button
            for button in self.buttons.values()
            if button.label == "Cancel" and button.card.reply_to is prompt
        ]
        if typed:
            await self.rig.api.person(prompt.chat.id).send(
                prompt.chat, "/cancel", reply_to=cards[-1].card if cards else prompt
            )
        elif cards:
            await self._press(cards[-1])
        self.done["cancels"] += 1

    @rule()
    def redeliver(self) -> None:
        trio.from_thread.run_sync(self.rig.api.repeat_last_batch)
        self.done["redeliveries"] += 1

    @rule(tenths=st.integers(1, 5))
    def wait(self, tenths: int) -> None:
        trio.from_thread.run(trio.sleep, tenths / 10)

    @precondition(lambda self: self.is_up)
    @rule(at_work=st.booleans())
    def crash(self, at_work: bool) -> None:
        """While engines are at work, if there is anything for them to do, or at any moment."""
        trio.from_thread.run(self._crash, at_work)

    async def _crash(self, at_work: bool) -> None:
        if at_work:
            with trio.move_on_after(BEGIN_S):
                await self.rig.until_so(lambda: self.rig.starts.keys() >= self.prompts.keys())
        await self.rig.kill()
        self.done["crashes"] += 1

    @precondition(lambda self: not self.is_up)
    @rule(ready=st.booleans())
    def restart(self, ready: bool) -> None:
        """Until it listens, or straight into whatever comes next."""
        if ready:
            trio.from_thread.run(self.rig.start, "--quick")
        else:
            trio.from_thread.run_sync(self.rig.launch, "--quick")

    @invariant()
    def nothing_begins_that_was_not_decided(self) -> None:
        """A run is in the store before its engine begins, so this holds at any moment."""
        starts = self.rig.starts
        begun = Counter(run.name for run in self._runs() if run.name and run.state != "queued")
        for name in self.prompts:
            assert starts[name] <= begun[name], f"{name} began {starts[name]} times"
            assert starts[f"{name}+"] <= begun[name], f"{name}+ began {starts[f'{name}+']} times"

    @invariant()
    def nothing_is_decided_twice(self) -> None:
        runs = self._runs()
        for ids in ([run.inbox for run in runs], [run.retry_of for run in runs]):
            twice = {id_ for id_, count in Counter(ids).items() if id_ is not None and count > 1}
            assert not twice, runs

    def teardown(self) -> None:
        try:
            trio.from_thread.run(self._end)
        finally:
            trio.from_thread.run_sync(self.closing.set)

    async def _end(self) -> None:
        """Let everything come to its end: then all of it was told, and nothing is left."""
        rig = self.rig
        if not self.is_up:
            await rig.start("--quick")
        # Whatever wrongly begins once more has the time for it.
        await trio.sleep(SETTLE_S)
        await self._until_all_is_over()
        self.nothing_begins_that_was_not_decided()
        self.nothing_is_decided_twice()

        runs = {run.id: run for run in self._runs()}
        firsts = Counter(run.name for run in runs.values() if run.inbox is not None)
        assert firsts == dict.fromkeys(self.prompts, 1), "a message is lost"
        due = Counter((origin(run, runs), run.state) for run in runs.values())
        for name, prompt in self.prompts.items():
            told = [m.text for m in endings(prompt.chat, prompt)]
            for status in STATUSES:
                once = sum(text.startswith(f"{status} · ") for text in told)
                again = sum(text.startswith(f"{REPEATED}{status} · ") for text in told)
                assert once <= due[name, status] <= once + again, (name, status, told)
            assert prompt in self.allowed or not rig.starts[f"{name}+"], f"{name}+ was not allowed"
        self.done["runs"] += len(runs)
        own = [rig.process and rig.process.pid]
        await rig.until_so(lambda: rig.alive() == own, lambda: "a process of a run is left")
        await rig.kill()
        await until_gone(rig.mark, within_s=60)

    async def _until_all_is_over(self) -> None:
        stopped: set[str] = set()
        with trio.fail_after(WITHIN_S):
            while not self.rig.is_over:
                self._look()
                stops = {
                    f"rn:cancel:{run.id}"
                    for run in self._runs()
                    if run.state in {"queued", "running"} and run.prompt.endswith(ENDLESS)
                }
                for button in [*self.buttons.values()]:
                    if button.data in stops - stopped:
                        stopped.add(button.data)
                        await self._press(button)
                await trio.sleep(0.05)

    async def _press(self, button: Button, *, times: int = 1) -> None:
        card = button.card
        if button.label.startswith("Allow") and card.reply_to is not None:
            self.allowed.add(card.reply_to)
        for _ in range(times):
            await self.rig.api.person(card.chat.id).press_data(card, button.data)
        self.done["taps"] += times

    def _look(self) -> None:
        """Remember every button in sight."""
        for chat in self.chats:
            for card in chat.bot_messages:
                for label in card.labels:
                    data = card.button(label)["callback_data"]
                    self.buttons.setdefault((chat.id, card.id, data), Button(card, label, data))

    def _runs(self) -> list[Run]:
        found = self.rig.rows("SELECT id, prompt, state, inbox_id, retry_of FROM runs ORDER BY id")
        return [*starmap(Run, found)]


def origin(run: Run, runs: dict[int, Run]) -> str | None:
    """What the run was first asked for with, also when it is the third try of it."""
    while run.retry_of is not None:
        run = runs[run.retry_of]
    return run.name


async def test_f23_the_promises_hold_in_any_order(figures: Figures) -> None:
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        # What depends on the moment is not found again with fewer steps.
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    async with trio.open_nursery() as nursery:
        host = Host(nursery)
        machine = cast("type[AnyOrder]", partial(AnyOrder, host))
        await trio.to_thread.run_sync(partial(run_state_machine_as_test, machine, settings=chosen))
    figures("F23", examples=EXAMPLES, **host.done, lost=0, twice=0)
