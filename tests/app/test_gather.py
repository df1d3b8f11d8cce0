from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import trio
import trio.testing

from takopi.app.commands.registry import COMMANDS
from takopi.app.gather import Gathering
from takopi.app.router import Router
from takopi.core.ids import InboxId, Scope
from takopi.core.messages import Arrival, Edited, IncomingMessage, Press
from takopi.store import inbox
from tests.app.recording import SOON_S, message_of, open_rig

LONG = "x" * 4000
GATHER_S = 1.0


@dataclass
class Chat:
    """What goes into the gathering, and what came out so far, with the time."""

    gathering: Gathering
    out: list[tuple[float, Arrival]] = field(default_factory=list[tuple[float, Arrival]])
    last: int = 0

    def say(self, text: str, *, sender: int = 1, album: str | None = None) -> None:
        self.last += 1
        message = replace(message_of(self.last, text), sender_id=sender, album=album)
        self.put(message)

    def put(self, what: IncomingMessage | Edited | Press) -> None:
        self.gathering.put(Arrival(InboxId(self.last), what))

    @property
    def passed(self) -> list[tuple[float, int, list[int]]]:
        return [
            (at, arrival.inbox_id, [part.inbox_id for part in arrival.parts])
            for at, arrival in self.out
        ]


@asynccontextmanager
async def open_chat(gather_s: float = GATHER_S) -> AsyncGenerator[Chat, None]:
    out: list[tuple[float, Arrival]] = []
    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        gathering = Gathering(
            nursery,
            gather_s=lambda: gather_s,
            stands_alone=lambda message: message.text.startswith("/"),
            pass_on=lambda arrival: out.append((trio.current_time() - began, arrival)),
        )
        try:
            yield Chat(gathering, out)
        finally:
            nursery.cancel_scope.cancel()


async def test_long_text_waits_for_one_second_and_no_other_does(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_chat() as chat:
        chat.say("short")
        chat.say(LONG)
        await trio.sleep(5)
        assert chat.passed == [(0.0, 1, []), (1.0, 2, [])]


async def test_each_long_part_is_waited_for_anew(autojump_clock: trio.testing.MockClock) -> None:
    async with open_chat() as chat:
        for _ in range(4):
            chat.say(LONG)
            await trio.sleep(0.9)
        await trio.sleep(5)
        assert chat.passed == [(3.7, 1, [2, 3, 4])]


async def test_short_part_ends_the_wait(autojump_clock: trio.testing.MockClock) -> None:
    async with open_chat() as chat:
        chat.say(LONG)
        chat.say("the end")
        chat.say("another")
        assert chat.passed == [(0.0, 1, [2]), (0.0, 3, [])]
        await trio.sleep(5)
        assert len(chat.out) == 2


async def test_what_does_not_belong_comes_after_what_waited(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_chat() as chat:
        chat.say(LONG)
        chat.say("/cancel")
        chat.say("", album="g1")
        chat.say("", album="g2")
        chat.put(Edited(message_of(4, "edited")))
        await trio.sleep(5)
        assert [number for _, number, _ in chat.passed] == [1, 2, 3, 4, 4]
        assert all(at == 0 for at, _, _ in chat.passed[:3])


async def test_other_senders_and_presses_pass_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_chat() as chat:
        chat.say(LONG)
        chat.say("from another", sender=2)
        chat.put(Press("1", Scope("telegram", 1), 5, 1, "rn:1"))
        assert [number for _, number, _ in chat.passed] == [2, 2]
        await trio.sleep(5)
        assert chat.passed[-1] == (1.0, 1, [])


async def test_nothing_waits_where_gather_s_is_0(autojump_clock: trio.testing.MockClock) -> None:
    async with open_chat(0) as chat:
        chat.say(LONG)
        chat.say("the end")
        assert chat.passed == [(0.0, 1, []), (0.0, 2, [])]


async def test_album_of_ten_waits_no_longer(autojump_clock: trio.testing.MockClock) -> None:
    async with open_chat() as chat:
        for _ in range(10):
            chat.say("", album="g1")
        assert chat.passed == [(0.0, 1, list(range(2, 11)))]


async def test_part_of_a_message_that_was_handled_before_is_handled_by_itself(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path) as rig, trio.open_nursery() as nursery:
        send, receive = trio.open_memory_channel[Arrival](10)
        nursery.start_soon(Router(rig.desk, COMMANDS, rig.registry).serve, receive)
        first, last = message_of(1, f"say: {LONG}"), message_of(3, "say: the end")
        # What is wrong with one part is no matter of the next.
        refused = message_of(2, f"@one @two {LONG}")
        numbers = [await rig.receive(each) for each in (first, refused, last)]
        await rig.desk.requests.from_message(first, numbers[0])
        for number, message in zip(numbers, (first, refused, last), strict=True):
            await send.send(Arrival(number, message))
        with trio.fail_after(SOON_S):
            while True:
                changed = rig.transport.changed
                if len(await rig.runs()) == 2:
                    break
                await changed.wait()
        assert [run.prompt for run in await rig.runs()] == ["say: the end", first.text]
        row = await rig.db.read(lambda conn: inbox.find(conn, numbers[1]))
        assert row is not None
        assert row.state == "refused"
        nursery.cancel_scope.cancel()


async def test_message_that_comes_twice_is_no_part_of_itself(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_chat() as chat:
        chat.say(LONG)
        first = message_of(1, LONG)
        chat.say(LONG)
        second = message_of(2, LONG)
        for number, message in ((1, first), (2, second)):
            again = replace(message, sender_id=1)
            chat.gathering.put(Arrival(InboxId(number), again))
        await trio.sleep(5)
        assert chat.passed == [(1.0, 1, [2])]


async def test_texts_of_different_minutes_are_two_messages(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_chat() as chat:
        for number, sent_ms in ((1, 0), (2, 4000), (3, 8000), (4, 60_000)):
            chat.last = number
            chat.put(replace(message_of(number, LONG), sent_ms=sent_ms))
        await trio.sleep(5)
        assert chat.passed == [(0.0, 1, [2, 3]), (1.0, 4, [])]
