"""What waits to be said in one chat, and what of it comes next: a decision without any I/O.

New messages keep their order and go first; then removals, then edits. A newer edit of a message
takes the place of one that waits. What must arrive is in the store; here is only the knowledge
that there may be some.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import trio

from takopi.core.errors import TakopiError
from takopi.core.ids import MessageRef, Scope
from takopi.core.outgoing import Card, Outgoing
from takopi.kit.supervise import Backoff
from takopi.telegram.pace import Window, chat_bucket

EDIT_TRIES = 5
"""How often an edit or a removal is tried: progress is best effort."""


@dataclass(eq=False, slots=True)
class Direct:
    """A message whose sender waits to hear which one it became; nothing of it is in the store."""

    scope: Scope
    message: Outgoing
    resume: Callable[[], None]
    queue: ChatQueue | None = None
    begun: bool = False
    outcome: MessageRef | TakopiError | None = None

    def settle(self, outcome: MessageRef | TakopiError) -> None:
        """Tell the sender."""
        self.outcome = outcome
        self.resume()


class Stored:
    """Something may be in the store's outbox for this chat."""


@dataclass(slots=True)
class Edit:
    """How a message is to read; without a card it keeps its words and loses its buttons."""

    message_id: int
    card: Card | None
    tries: int = 0


@dataclass(slots=True)
class Removal:
    """A message that is to go."""

    message_id: int
    tries: int = 0


Step: TypeAlias = Direct | Stored | Edit | Removal

STORED = Stored()


class ChatQueue:
    """One chat. `next` says what to do and when; whoever does it takes it out and says how it went.

    It outlives its sender task, because the chat's pace does.
    """

    def __init__(self, chat: Scope, overall: Window) -> None:
        self.chat = chat
        self.backoff = Backoff()
        self.changed = trio.Event()
        self.settled = trio.Event()
        """Set unless a step is being done."""
        self.settled.set()
        self._overall = overall
        self._own = chat_bucket(chat.chat_id)
        self._news: deque[Direct | Stored] = deque()
        self._removals: dict[int, Removal] = {}
        self._edits: dict[int, Edit] = {}
        self._not_before = -math.inf
        self._news_not_before = -math.inf
        self._rest_not_before = -math.inf

    def put_direct(self, direct: Direct) -> None:
        """Append a message."""
        direct.queue = self
        self._news.append(direct)
        self.changed.set()

    def withdraw(self, direct: Direct) -> None:
        """Take back a message that has not begun."""
        self._news.remove(direct)
        self.changed.set()

    def put_stored(self) -> None:
        """Append: look into the store. One look that comes later than this is enough."""
        if not (self._news and self._news[-1] is STORED):
            self._news.append(STORED)
        self.changed.set()

    def put_edit(self, message_id: int, card: Card) -> None:
        """Let a message read so, unless it is about to go."""
        if message_id not in self._removals:
            self._edits[message_id] = Edit(message_id, card)
            self.changed.set()

    def put_clearing(self, message_id: int) -> None:
        """Let a message lose its buttons; what waits to be said in it is said without them."""
        if message_id not in self._removals:
            waiting = self._edits.get(message_id)
            card = None if waiting is None else waiting.card
            self._edits[message_id] = Edit(message_id, card and replace(card, buttons=()))
            self.changed.set()

    def put_removal(self, message_id: int) -> None:
        """Let a message go, and with it how it was to read."""
        self._edits.pop(message_id, None)
        self._removals.setdefault(message_id, Removal(message_id))
        self.changed.set()

    def next(self, now: float) -> tuple[Step | None, float]:
        """What is to be done, and when; a time that has come means now. None: all is said."""
        free_at = max(self._not_before, self._overall.ready_at(now))
        news: tuple[Step | None, float] = (None, math.inf)
        if self._news:
            at = max(free_at, self._news_not_before, self._own.ready_at(now))
            news = (self._news[0], at)
        other: tuple[Step | None, float] = (None, math.inf)
        rest_at = max(free_at, self._rest_not_before)
        if self._removals:
            other = (next(iter(self._removals.values())), rest_at)
        elif self._edits:
            # An edit leaves a token behind, so that an answer never waits for progress.
            edit = next(iter(self._edits.values()))
            other = (edit, max(rest_at, self._own.ready_at(now, spare=1)))
        return news if news[1] <= max(now, other[1]) else other

    def take(self, step: Step) -> None:
        """Begin a step: it no longer waits."""
        match step:
            case Direct() | Stored():
                self._news.popleft()
            case Edit():
                del self._edits[step.message_id]
            case Removal():
                del self._removals[step.message_id]

    def spend(self, now: float, *, own: bool = True) -> None:
        """A request to this chat is on its way; a removal does not count among the chat's own."""
        self._overall.take(now)
        if own:
            self._own.take(now)

    def again(self, step: Step) -> None:
        """Put a step back where it was; an edit only if there is no newer one by now."""
        match step:
            case Direct() | Stored():
                self._news.appendleft(step)
            case Edit():
                if step.tries < EDIT_TRIES and step.message_id not in self._removals:
                    self._edits.setdefault(step.message_id, step)
            case Removal():
                if step.tries < EDIT_TRIES:
                    self._removals.setdefault(step.message_id, step)

    def hold(self, until: float) -> None:
        """Nothing at all goes to this chat before then."""
        self._not_before = max(self._not_before, until)

    def hold_news(self, until: float) -> None:
        """No new message goes before then; edits and removals may."""
        self._news_not_before = until

    def hold_rest(self, until: float) -> None:
        """No edit and no removal goes before then; new messages may."""
        self._rest_not_before = until

    def clear(self) -> tuple[Direct, ...]:
        """Forget everything; returns the messages that somebody waits for."""
        waiting = tuple(step for step in self._news if isinstance(step, Direct))
        self._news.clear()
        self._removals.clear()
        self._edits.clear()
        self._news_not_before = -math.inf
        self.changed.set()
        return waiting
