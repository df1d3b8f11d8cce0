"""What the transport tells the rest of takopi: plain calls that must return at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from takopi.core.errors import TakopiError
from takopi.core.ids import MessageRef, Scope
from takopi.core.outgoing import Card


def _ignore(*_what: object) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Who hears of what; without somebody to hear it, it is in the log only."""

    on_trouble: Callable[[TakopiError], None] = _ignore
    """Receiving is in trouble that a person can end (`Conflict`, `StoreFailed`); once each time."""
    on_poll_end: Callable[[TakopiError | None], None] = _ignore
    """An attempt to receive has ended, well or badly, or its pause goes on: the poller is alive."""
    on_topic_gone: Callable[[Scope], None] = _ignore
    """The topic was deleted; what was meant for it goes to its chat."""
    on_chat_moved: Callable[[Scope, Scope], None] = _ignore
    """The first chat goes on as the second; the store has followed already."""
    on_edit_lost: Callable[[MessageRef, Card], None] = _ignore
    """The message that was to read so is no longer there."""
    on_sent: Callable[[str, MessageRef], None] = _ignore
    """What was in the store's outbox under this key has arrived; the store knows it."""
    on_delete_refused: Callable[[MessageRef], None] = _ignore
    """The message cannot be removed, and still reads as it did."""
