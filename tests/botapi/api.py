"""What a test holds of the loopback Bot API: its chats and people, its log, and its faults."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import trio

from tests.botapi.chats import Chat, Json, Message, User
from tests.botapi.faults import Fault, Held, Late, Trouble
from tests.botapi.pace import Limits, Pace
from tests.botapi.person import Person
from tests.botapi.refusal import Refused
from tests.botapi.updates import Updates
from tests.botapi.world import World
from tests.wire.door import Door


@dataclass(slots=True, eq=False)
class Request:
    """One request and what became of it, in Trio's time.

    `status` stays None while there is no reply, and for ever if there is none. `left` says that the
    client hung up before.
    """

    method: str
    parameters: dict[str, Any]
    at_s: float
    connection: int
    status: int | None = None
    error: str | None = None
    replied_at_s: float | None = None
    left: bool = False
    fault: Fault | None = None

    @property
    def chat_id(self) -> object:
        return self.parameters.get("chat_id")


class Violated(AssertionError):
    """The bot sent what Telegram would not take."""


class BotApi:
    """The loopback Bot API as a test sees it."""

    def __init__(self, token: str, bot: User, *, door: Door) -> None:
        self.token = token
        self.url = f"http://127.0.0.1:{door.port}"
        self.world = World(bot)
        self.requests: list[Request] = []
        self.violations: list[str] = []
        self.on_reply: Callable[[Request], None] | None = None
        self.pace: Pace | None = None
        self.faults: list[Fault] = []
        self._expected: list[str] = []
        self._door = door
        self._requested = trio.Event()

    @property
    def bot(self) -> User:
        return self.world.bot

    @property
    def updates(self) -> Updates:
        """The queue that getUpdates reads."""
        return self.world.updates

    def person(
        self,
        user_id: int,
        first_name: str = "Ada",
        *,
        username: str | None = None,
        is_bot: bool = False,
    ) -> Person:
        """A person who has the bot's private chat open; the same one for the same id."""
        world = self.world
        if user_id not in world.users:
            user = User(user_id, first_name, username=username, is_bot=is_bot, language_code="en")
            world.users[user_id] = user
            world.chats[user_id] = Chat(
                user_id, "private", bot=world.bot, clock=world.clock, person=user
            )
        return Person(world, world.users[user_id])

    def chat(self, chat_id: int) -> Chat:
        """A chat that is there: of a person, or made by `group`, `supergroup` or `channel`."""
        return self.world.chats[chat_id]

    def group(self, chat_id: int, title: str = "Group") -> Chat:
        """A small group, which can become a supergroup."""
        chat = Chat(chat_id, "group", bot=self.bot, clock=self.world.clock, title=title)
        return self.world.chats.setdefault(chat_id, chat)

    def supergroup(self, chat_id: int, title: str = "Team", *, forum: bool = False) -> Chat:
        """A group as most are; with topics if it is a forum. The bot is an admin there."""
        chat = Chat(
            chat_id, "supergroup", bot=self.bot, clock=self.world.clock, title=title, is_forum=forum
        )
        return self.world.chats.setdefault(chat_id, chat)

    def channel(self, chat_id: int, title: str = "News") -> Chat:
        chat = Chat(chat_id, "channel", bot=self.bot, clock=self.world.clock, title=title)
        return self.world.chats.setdefault(chat_id, chat)

    def post(self, channel: Chat, text: str) -> Message:
        """Write in a channel, as its admins do."""
        return self.world.post(channel, text)

    def migrate(self, group: Chat, new_id: int) -> Chat:
        """Turn a group into a supergroup; the old id is refused from now on."""
        return self.world.migrate(group, new_id)

    def update(self, payload: Json) -> int:
        """Queue an update of any shape, known or unknown; its id."""
        return self.updates.push_raw(payload)

    def pass_time(self, seconds: float) -> None:
        """Let the time of day jump: messages, presses and updates grow old."""
        self.world.clock.pass_s(seconds)

    def limit_pace(self, limits: Limits | None = None) -> Pace:
        """From now on too many messages are answered 429."""
        self.pace = Pace(limits or Limits())
        return self.pace

    def transcript(self, chat: Chat | int) -> str:
        return (self.chat(chat) if isinstance(chat, int) else chat).transcript()

    def expect_rejection(self, *parts: str) -> None:
        """A refusal whose words contain one of these parts is what the test wants to see."""
        self._expected.extend(parts)

    def fail(
        self,
        trouble: Trouble,
        *,
        method: str | None = None,
        chat: Chat | int | None = None,
        times: int | None = 1,
        for_s: float = math.inf,
        applied: bool = False,
    ) -> Fault:
        """Trouble for the next request that fits, for so many or all of them, or for a while.

        `applied` requests take effect before their reply is lost. A poll that waits already meets
        the trouble at once.
        """
        fault = Fault(
            trouble=trouble,
            method=method,
            chat_id=chat.id if isinstance(chat, Chat) else chat,
            applied=applied or isinstance(trouble, Late | Held),
            times=times,
            until_s=trio.current_time() + for_s,
        )
        self.faults.append(fault)
        if fault.fits("getUpdates", None) and not fault.applied:
            self.updates.interrupt()
        return fault

    def repeat_last_batch(self) -> None:
        """The next getUpdates brings what the last one brought, whatever it confirms."""
        self.updates.repeat_last_batch()

    def drop_connections(self) -> None:
        """Break every open connection."""
        self._door.drop()

    async def go_down(self) -> None:
        """Break every open connection and refuse new ones."""
        await self._door.shut()

    def come_up(self) -> None:
        """Listen again at the same address."""
        self._door.open()

    async def wait_for_request(
        self, predicate: Callable[[Request], bool], *, within_s: float = 20.0
    ) -> Request:
        """The first request that fits, replied or not, as soon as it is there."""
        with trio.move_on_after(within_s):
            while True:
                for request in self.requests:
                    if predicate(request):
                        return request
                await self._requested.wait()
        raise AssertionError(f"no such request within {within_s} s")

    def sent(self, method: str) -> list[Request]:
        """The requests of a method, in their order."""
        return [request for request in self.requests if request.method == method]

    def record(self, request: Request) -> None:
        self.requests.append(request)
        self.note_request()

    def note_request(self) -> None:
        self._requested.set()
        self._requested = trio.Event()

    def meet_fault(self, request: Request) -> Fault | None:
        """The trouble that this request is in."""
        for fault in self.faults:
            if fault.fits(request.method, request.chat_id):
                fault.strike()
                request.fault = fault
                return fault
        return None

    def judge(self, method: str, refused: Refused) -> None:
        """What the test itself brought about is no violation: 403, 409, 429, a moved chat."""
        if refused.status in {403, 409, 429} or refused.parameters:
            return
        if any(part in refused.description for part in self._expected):
            return
        self.violations.append(f"{method}: {refused.status} {refused.description}")
