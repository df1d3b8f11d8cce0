from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takopi.core.ids import EngineId
from takopi.core.messages import IncomingMessage, Press
from takopi.interview.machine import TOO_LATE
from takopi.interview.questions import Asked, AskedOption, AskedQuestion
from takopi.interview.service import OVER, USELESS, Interviews
from takopi.interview.session import Order, decode
from takopi.interview.store import Files
from takopi.store import outbox
from takopi.store.database import Database, open_database
from takopi.store.ledger import NewRun
from tests.interview.stand_ins import CHAT, OneFolder, PhoneChat, SlowModel

ADA = CHAT.chat_id
WITHIN_S = 60.0
THREAD_S = 0.002


@dataclass(frozen=True)
class Plan:
    task: str


@dataclass(frozen=True)
class Tap:
    """Any button of any card that there ever was, `times` at once; the last card is number 0."""

    card: int
    button: int
    times: int


@dataclass(frozen=True)
class Forged:
    data: str


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Answer:
    """What the model says; None: nothing."""

    questions: tuple[AskedQuestion, ...] | None


@dataclass(frozen=True)
class Restart:
    """The process ends, with or without a look at the phone before."""

    looks: bool


@dataclass(frozen=True)
class Tidied:
    """Somebody has removed the folder of the plans."""


Act: TypeAlias = Plan | Tap | Forged | Text | Answer | Restart | Tidied

OPTIONS = (AskedOption("Yes", "y"), AskedOption("No", "n"))
QUESTIONS = st.lists(
    st.builds(
        AskedQuestion,
        st.sampled_from(["One?", "Two?", "Three?"]),
        options=st.sampled_from([OPTIONS, ()]),
        allow_free_text=st.booleans(),
    ),
    max_size=2,
).map(tuple)
TAPS = st.builds(Tap, st.sampled_from([0, 0, 0, 1, 3]), st.integers(0, 4), st.integers(1, 2))
ACTS: st.SearchStrategy[Act] = st.one_of(
    TAPS,
    TAPS,
    st.builds(Answer, st.one_of(QUESTIONS, QUESTIONS, st.none())),
    st.builds(Answer, QUESTIONS),
    st.builds(Text, st.sampled_from(["mine", " ", "another"])),
    st.builds(
        Forged, st.sampled_from(["confirm", "over", "continue", "cancel", "a:0:0", "eq:0", "x"])
    ),
    st.builds(Plan, st.sampled_from(["tidy up", "add auth"])),
    st.builds(Restart, st.booleans()),
    st.just(Tidied()),
)


@dataclass
class World:
    """What outlives a process: the store, the files, the phone and what was started."""

    db: Database
    files: Files
    chat: PhoneChat
    host: OneFolder
    model: SlowModel
    calls: trio.Nursery | None = None
    messages: int = 10_000

    @asynccontextmanager
    async def process(self) -> AsyncGenerator[Interviews, None]:
        async with trio.open_nursery() as nursery:
            service = Interviews(
                nursery, self.db, files=self.files, oneshot=self.model, host=self.host
            )
            await self.db.write(outbox.recover)
            await service.recover()
            self.calls = nursery
            try:
                yield service
            finally:
                nursery.cancel_scope.cancel()

    async def act(self, service: Interviews, act: Act) -> None:
        match act:
            case Plan(task):
                await service.plan(Order(task=task, engine="demo"), CHAT, user_id=ADA)
            case Tap():
                await self._tap(service, act)
            case Forged(data):
                await self._press(service, max(self.chat.pressable, default=1), data)
            case Text(text):
                await self._say(service, text)
            case Answer(None):
                self.model.tell(None)
            case Answer(questions):
                asked = questions or ()
                self.model.tell(Asked(asked, not asked, "goal", "description"))
            case Tidied():
                shutil.rmtree(self.host.cwd / ".claude", ignore_errors=True)
            case Restart():
                pass
        await self.settle()

    async def settle(self) -> None:
        """Until every call waits for the model: what it says is taken in tasks of their own."""
        assert self.calls is not None
        with trio.fail_after(WITHIN_S):
            await trio.testing.wait_all_tasks_blocked()
            while len(self.calls.child_tasks) != self.model.in_flight:
                # One of them writes in a thread.
                await trio.testing.wait_all_tasks_blocked(THREAD_S)

    async def _tap(self, service: Interviews, tap: Tap) -> None:
        cards = sorted(self.chat.pressable, reverse=True)[tap.card :][:1]
        for number in cards:
            buttons = [button for row in self.chat.pressable[number].buttons for button in row]
            data = buttons[tap.button % len(buttons)].data.removeprefix("iq:")
            async with trio.open_nursery() as fingers:
                for _ in range(tap.times):
                    fingers.start_soon(self._press, service, number, data)

    async def _press(self, service: Interviews, number: int, data: str) -> None:
        press = Press("id", CHAT, number, ADA, f"iq:{data}")
        notes: list[str] = []
        await service.press(press, data, answer=notes.append)
        assert len(notes) == 1
        if number != max(self.chat.pressable, default=number):
            assert notes[0] in {TOO_LATE, OVER, USELESS}

    async def _say(self, service: Interviews, text: str) -> None:
        self.messages += 1
        message = IncomingMessage(
            "telegram", ADA, self.messages, text,
            reply_to_message_id=None, reply_to_text=None, sender_id=ADA,
        )  # fmt: skip
        async with service.taking(message) as take:
            if take is not None:
                await take()

    async def check(self) -> None:
        """What holds between any two acts."""
        assert all(count == 1 for count in self.host.started.values())
        files = list(self.files.folder.glob("*-interactive.json*"))
        assert len(files) <= 1
        for file in files:
            session = decode(file.read_bytes())
            assert file == self.files.path(CHAT, ADA)
            assert session.session_id not in self.host.started
            assert self.model.in_flight == (session.shown == "checking")
            key = session.card_key
            assert await self.db.read(lambda conn, key=key: outbox.knows(conn, key))
        if not files:
            assert self.model.in_flight == 0
        for session, prompt, brief in self.host.prompts:
            card = next(
                card.text.text
                for card in reversed(self.chat.pressable.values())
                if session.plan_path is not None and session.plan_path in card.text.text
            )
            for pair in session.pairs():
                assert f"Q: {pair.question}\nA: {pair.answer}" in prompt
                assert f"**Q: {pair.question}**\nA: {pair.answer}" in brief
                assert f"{pair.question} → {pair.answer}" in card
        self.host.prompts.clear()


async def live(folder: Path, acts: Sequence[Act]) -> World:
    folder.joinpath("cwd").mkdir()
    async with open_database(folder / "state.db") as db, trio.open_nursery() as nursery:
        await nursery.start(db.serve)
        chat = PhoneChat(db)
        host = OneFolder(chat, folder / "cwd")
        world = World(db, Files(folder / "sessions"), chat, host, SlowModel())
        left = list(acts)
        while left:
            await live_once(world, left)
        nursery.cancel_scope.cancel()
    return world


async def live_once(world: World, left: list[Act]) -> None:
    """One process, until it is to be restarted or nothing is left to do."""
    async with world.process() as service:
        await world.settle()
        while left:
            act = left.pop(0)
            if isinstance(act, Restart):
                if act.looks:
                    await world.chat.look()
                return
            await world.act(service, act)
            await world.chat.look()
            await world.check()


WHOLE: Sequence[Act] = (
    Plan("add auth"),
    Answer((AskedQuestion("One?", options=OPTIONS),)),
    Tap(0, 0, 2),
    Restart(False),
    Answer((AskedQuestion("Two?", allow_free_text=True),)),
    Text("mine"),
    Answer(None),
    Tap(0, 0, 2),
)


def run(acts: Sequence[Act]) -> World:
    with TemporaryDirectory() as folder:
        return trio.run(partial(live, Path(folder), acts))


def test_plan_that_is_carried_out_leaves_nothing_open() -> None:
    world = run(WHOLE)
    assert list(world.host.started.values()) == [1]
    assert world.model.calls == 4


def test_plan_that_was_removed_is_written_again_before_the_run_starts() -> None:
    world = run([*WHOLE[:-1], Tidied(), WHOLE[-1]])
    assert list(world.host.started.values()) == [1]


def test_start_over_gives_up_the_call_that_is_on_its_way() -> None:
    world = run([Plan("add auth"), Plan("tidy up"), Tap(0, 1, 2)])
    assert world.model.calls == 2


def test_button_of_an_old_card_does_nothing() -> None:
    questions = tuple(AskedQuestion(text, options=OPTIONS) for text in ("One?", "Two?", "Three?"))
    back = 2
    run([Plan("add auth"), Answer(questions), Tap(0, 0, 1), Tap(0, 0, 1), Tap(1, back, 1)])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, len(WHOLE)), st.lists(ACTS, max_size=15))
def test_taps_texts_restarts_and_a_model_in_any_order_keep_every_promise(
    begun: int, acts: list[Act]
) -> None:
    run([*WHOLE[:begun], *acts])


@pytest.mark.parametrize(
    ("engine", "resumed", "told"),
    [("demo", False, True), ("demo", True, True), ("plain", False, True), ("plain", True, False)],
)
async def test_engine_without_a_place_for_instructions_gets_them_once_in_a_thread(
    tmp_path: Path, engine: str, resumed: bool, told: bool
) -> None:
    async with open_database(tmp_path / "state.db") as db, trio.open_nursery() as nursery:
        host = OneFolder(PhoneChat(db), tmp_path)
        files = Files(tmp_path / "sessions")
        service = Interviews(nursery, db, files=files, oneshot=SlowModel(), host=host)
        run = NewRun(CHAT, "add auth", EngineId(engine))
        assert (service.instruction(run, resumed=resumed) is not None) == told
        assert service.instruction(replace(run, interactive=False), resumed=resumed) is None
