"""The queue of updates, as getUpdates hands it out: until confirmed, to one poller, for a day."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from tests.botapi.chats import Clock, Json
from tests.botapi.refusal import conflict

KINDS = (
    "message", "edited_message", "channel_post", "edited_channel_post", "business_connection",
    "business_message", "edited_business_message", "deleted_business_messages",
    "message_reaction", "message_reaction_count", "inline_query", "chosen_inline_result",
    "callback_query", "shipping_query", "pre_checkout_query", "purchased_paid_media", "poll",
    "poll_answer", "my_chat_member", "chat_member", "chat_join_request", "chat_boost",
    "removed_chat_boost", "managed_bot", "guest_message",
)  # fmt: skip
BY_REQUEST = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
KEPT_S = 24 * 3600
LONGEST_POLL_S = 50
OTHER_POLLER = (
    "terminated by other getUpdates request; make sure that only one bot instance is running"
)


@dataclass(slots=True, eq=False)
class _Poll:
    """A request that waits for an update."""

    woken: trio.Event = field(default_factory=trio.Event)
    ended: bool = False
    interrupted: bool = False


class Updates:
    """What the bot has not yet confirmed."""

    def __init__(self, clock: Clock, *, first_id: int = 500_000_001) -> None:
        self.allowed = frozenset(KINDS) - BY_REQUEST
        self.conflict_pause_s = 3.0
        self.next_id = first_id
        self._clock = clock
        self._queue: deque[tuple[float, Json]] = deque()
        self._last_batch: list[Json] = []
        self._repeat = False
        self._waiting: _Poll | None = None
        self._next_conflict_s = -1.0
        self._confirmed = trio.Event()

    @property
    def unconfirmed(self) -> list[Json]:
        """What the bot may still be given."""
        return [update for _, update in self._queue]

    def push(self, kind: str, payload: Json) -> int | None:
        """Queue an update of a kind; its id, or None when the bot does not want the kind."""
        if kind not in self.allowed:
            return None
        return self.push_raw({kind: payload})

    def push_raw(self, payload: Json) -> int:
        """Queue an update of any shape."""
        update_id = self.next_id
        self.next_id += 1
        self._queue.append((self._clock.now_s(), {"update_id": update_id, **payload}))
        self._wake()
        return update_id

    def repeat_last_batch(self) -> None:
        """Give out the last batch once more, confirmed or not."""
        self._repeat = True
        self._wake()

    def interrupt(self) -> None:
        """Let a poll that waits end with nothing."""
        if self._waiting:
            self._waiting.interrupted = True
            self._wake()

    def forget(self) -> None:
        """Drop everything that is not confirmed."""
        self._queue.clear()

    async def wait_until_confirmed(self, update_id: int, *, within_s: float = 20.0) -> None:
        """Until the bot has said that it has this update."""
        with trio.move_on_after(within_s):
            while any(update["update_id"] <= update_id for _, update in self._queue):
                await self._confirmed.wait()
            return
        raise AssertionError(f"update {update_id} was not confirmed within {within_s} s")

    async def poll(
        self,
        *,
        offset: int = 0,
        limit: int = 100,
        timeout_s: int = 0,
        allowed: Sequence[str] | None = None,
    ) -> list[Json]:
        """One getUpdates request, from its confirmation to its batch."""
        if allowed is not None:
            self.allowed = frozenset(allowed) or frozenset(KINDS) - BY_REQUEST
        self._end_waiting()
        self._confirm(offset)
        poll = _Poll()
        self._waiting = poll
        try:
            with trio.move_on_after(min(timeout_s, LONGEST_POLL_S)):
                while not (self._queue or self._repeat or poll.ended or poll.interrupted):
                    await poll.woken.wait()
                    poll.woken = trio.Event()
        finally:
            if self._waiting is poll:
                self._waiting = None
        if poll.ended:
            await self._keep_conflicts_apart()
            raise conflict(OTHER_POLLER)
        return [] if poll.interrupted else self._batch(limit)

    def _batch(self, limit: int) -> list[Json]:
        if self._repeat:
            self._repeat = False
            return self._last_batch
        batch = [update for _, update in self._queue][: max(1, min(limit, 100))]
        if batch:
            self._last_batch = batch
        return batch

    def _confirm(self, offset: int) -> None:
        if offset < 0:
            while len(self._queue) > -offset:
                self._queue.popleft()
        while self._queue and (
            self._queue[0][1]["update_id"] < offset
            or self._queue[0][0] < self._clock.now_s() - KEPT_S
        ):
            self._queue.popleft()
        self._confirmed.set()
        self._confirmed = trio.Event()

    def _end_waiting(self) -> None:
        if self._waiting:
            self._waiting.ended = True
            self._wake()

    async def _keep_conflicts_apart(self) -> None:
        now = trio.current_time()
        if now < self._next_conflict_s:
            await trio.sleep(self.conflict_pause_s)
        else:
            self._next_conflict_s = now + self.conflict_pause_s

    def _wake(self) -> None:
        if self._waiting:
            self._waiting.woken.set()
