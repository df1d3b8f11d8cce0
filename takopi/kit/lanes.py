"""One FIFO lane per key: jobs of a lane one after another, lanes in parallel up to a cap.

State changes are synchronous, so there is nothing to lock: a job starts in the same step in which
it became possible. Each job runs as a task of its own, in the context in which it was put.
"""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import trio

K = TypeVar("K", bound=Hashable)
J = TypeVar("J")


@dataclass(eq=False, slots=True)
class Ticket(Generic[K, J]):
    """A job in its lane. Its place is 0 once it runs, else how many must go before it."""

    key: K
    job: J
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    place: int = 0
    started: bool = False


class Lanes(Generic[K, J]):
    """Runs jobs in the given nursery. `on_move` hears of every change of a waiting job's place."""

    def __init__(
        self,
        nursery: trio.Nursery,
        run: Callable[[J], Awaitable[None]],
        *,
        max_active: int,
        on_move: Callable[[Ticket[K, J]], None] = lambda _ticket: None,
    ) -> None:
        self._max_active = max_active
        self._nursery = nursery
        self._run = run
        self._on_move = on_move
        self._waiting: deque[Ticket[K, J]] = deque()
        self._running: dict[K, Ticket[K, J]] = {}

    @property
    def waiting(self) -> int:
        """How many jobs have not begun."""
        return len(self._waiting)

    def is_busy(self, key: K) -> bool:
        """Whether something runs or waits in this lane."""
        return key in self._running or any(ticket.key == key for ticket in self._waiting)

    def put(self, key: K, job: J) -> Ticket[K, J]:
        """Append a job to its lane. It has begun on return if nothing was in its way."""
        ticket = Ticket(key, job)
        self._waiting.append(ticket)
        self._advance()
        return ticket

    def drop(self, ticket: Ticket[K, J]) -> bool:
        """Remove a job that has not begun. False means that it has, or that it is not here."""
        if ticket.started or ticket not in self._waiting:
            return False
        self._waiting.remove(ticket)
        self._advance()
        return True

    def rekey(self, old: K, new: K) -> None:
        """Let a lane go on as another: what runs and waits in `old` is of `new` from now on.

        What runs in `new` already stays there, and what comes from `old` waits behind it.
        """
        for ticket in self._waiting:
            if ticket.key == old:
                ticket.key = new
        if old in self._running and new not in self._running:
            ticket = self._running.pop(old)
            ticket.key = new
            self._running[new] = ticket
        self._tell_places()

    def resize(self, max_active: int) -> None:
        """Change the cap. What runs goes on; 0 lets nothing more begin."""
        self._max_active = max_active
        self._advance()

    def _advance(self) -> None:
        """Start what can start, and tell the rest where it stands."""
        free = self._max_active - len(self._running)
        busy = set(self._running)
        blocked: deque[Ticket[K, J]] = deque()
        ready: list[Ticket[K, J]] = []
        for ticket in self._waiting:
            if free > 0 and ticket.key not in busy:
                free -= 1
                ready.append(ticket)
            else:
                blocked.append(ticket)
            busy.add(ticket.key)
        self._waiting = blocked
        for ticket in ready:
            self._start(ticket)
        self._tell_places()

    def _start(self, ticket: Ticket[K, J]) -> None:
        ticket.started = True
        ticket.place = 0
        self._running[ticket.key] = ticket
        # start_soon copies the context it is called in: the job's, not that of whoever is here.
        ticket.context.run(self._nursery.start_soon, self._work, ticket, name=f"lane {ticket.key}")

    async def _work(self, ticket: Ticket[K, J]) -> None:
        await self._run(ticket.job)
        # Not when it failed or was cancelled: the nursery closes, and what waits must not begin.
        del self._running[ticket.key]
        self._advance()

    def _tell_places(self) -> None:
        full = len(self._running) >= self._max_active
        ahead_in_lane: dict[K, int] = dict.fromkeys(self._running, 1)
        heads = 0
        for ticket in self._waiting:
            ahead = ahead_in_lane.get(ticket.key, 0)
            ahead_in_lane[ticket.key] = ahead + 1
            if ahead == 0 and full:
                # First in its lane, so only the cap is in its way: one of the running must
                # end, and the heads of other lanes that came earlier go first.
                heads += 1
                ahead = heads
            if ticket.place != ahead:
                ticket.place = ahead
                self._on_move(ticket)
