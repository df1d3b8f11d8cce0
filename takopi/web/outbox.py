"""Everything that takopi says on the page goes through the store, in order; edits only once each.

What is in the store's outbox arrives exactly once. Edits and removals wait here until the next
write, the newest of each message, and are lost with the process: progress is best effort.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import structlog
import trio

from takopi.core.errors import StoreFailed
from takopi.core.ids import MessageRef
from takopi.core.outgoing import Card, Outgoing
from takopi.kit.clock import now_ms
from takopi.kit.supervise import Backoff
from takopi.store.database import Database
from takopi.web import messages
from takopi.web.chat import ref

_Sent: TypeAlias = tuple[tuple[str | None, int], ...]

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.web")


@dataclass(slots=True)
class _Work:
    stored: bool = False
    edits: dict[int, Card | None] = field(default_factory=dict[int, Card | None])
    removals: set[int] = field(default_factory=set[int])

    def __bool__(self) -> bool:
        return self.stored or bool(self.edits) or bool(self.removals)

    def restore(self, older: _Work) -> None:
        """Take back what could not be done; what is newer wins."""
        self.stored = self.stored or older.stored
        self.removals |= older.removals
        self.edits = {
            number: card
            for number, card in (older.edits | self.edits).items()
            if number not in self.removals
        }


class Outbox:
    """What waits to be shown. `serve` writes it down; `on_change` hears that it is there.

    `on_sent` hears which message became of what was in the store's outbox under a key.
    """

    def __init__(
        self,
        db: Database,
        *,
        on_change: Callable[[], None],
        on_sent: Callable[[str, MessageRef], None] = lambda _key, _ref: None,
    ) -> None:
        self._db = db
        self._on_change = on_change
        self._on_sent = on_sent
        self._work = _Work()
        self._wake = trio.Event()
        self._quiet = trio.Event()
        self._is_busy = False

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write until cancelled. What an earlier process left in the outbox comes first."""
        backoff = Backoff(cap_s=5.0)
        self._work.stored = True
        task_status.started()
        while True:
            if not self._work:
                self._quiet.set()
                self._wake = trio.Event()
                await self._wake.wait()
                continue
            work, self._work = self._work, _Work()
            self._is_busy = True
            try:
                changed, sent = await self._db.write(lambda conn, work=work: _perform(conn, work))
            except StoreFailed as error:
                self._work.restore(work)
                pause_s = backoff.pause_s()
                log.warning("page.delayed", why=error.what, pause_s=round(pause_s, 1))
                await trio.sleep(pause_s)
            else:
                backoff.reset()
                if changed:
                    self._on_change()
                self._tell(sent)
            finally:
                self._is_busy = False

    async def flush(self) -> None:
        """Return when nothing waits; how long that may take is the caller's."""
        while self._work or self._is_busy:
            self._quiet = trio.Event()
            await self._quiet.wait()

    async def send(self, message: Outgoing) -> int:
        """Show a message behind everything that was said before; returns its number."""

        def change(conn: sqlite3.Connection) -> tuple[int, _Sent]:
            sent = messages.send_stored(conn, now_ms=now_ms())
            return messages.send(conn, message, now_ms=now_ms()), sent

        message_id, sent = await self._db.write(change)
        self._on_change()
        self._tell(sent)
        return message_id

    def edit(self, message_id: int, card: Card) -> None:
        """Let a message read so; a newer edit takes the place of one that waits."""
        if message_id not in self._work.removals:
            self._work.edits[message_id] = card
            self._wake.set()

    def clear_buttons(self, message_id: int) -> None:
        """Let a message lose its buttons; what waits to be said in it is said without them."""
        if message_id not in self._work.removals:
            waiting = self._work.edits.get(message_id)
            self._work.edits[message_id] = waiting and replace(waiting, buttons=())
            self._wake.set()

    def remove(self, message_id: int) -> None:
        """Let a message go, and with it how it was to read."""
        self._work.edits.pop(message_id, None)
        self._work.removals.add(message_id)
        self._wake.set()

    def wake(self) -> None:
        """There is something in the outbox."""
        self._work.stored = True
        self._wake.set()

    def _tell(self, sent: _Sent) -> None:
        for key, message_id in sent:
            if key is not None:
                self._on_sent(key, ref(message_id))


def _perform(conn: sqlite3.Connection, work: _Work) -> tuple[bool, _Sent]:
    sent = messages.send_stored(conn, now_ms=now_ms()) if work.stored else ()
    done = [bool(sent)]
    done += [messages.remove(conn, message_id) for message_id in work.removals]
    done += [messages.edit(conn, message_id, card) for message_id, card in work.edits.items()]
    return any(done), sent
