"""Cards that offer a short choice: the first choice counts, and the card then says what it was.

A button carries a digest of its choice, so that any name fits and a press is read against what
there is now. That a card was decided is in the store, together with what was chosen.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from takopi.app.desk import Call, Desk
from takopi.app.tap import Tap
from takopi.core.ids import Scope
from takopi.core.outgoing import Button, Card, Text
from takopi.kit.clock import now_ms
from takopi.present.cards import fit
from takopi.present.wording import one_line
from takopi.store import outbox
from takopi.telegram.buttons import Codec

PickKind = Literal["agent", "attach", "cancel", "ctx", "model", "trigger", "worktrees"]

CLEAR = "clear"
"""The value of a button that undoes a choice: no digest reads so."""

MAX_CHOICES = 20
LABEL_CHARS = 60
DIGEST_CHARS = 12
GONE = "This choice is no longer there."


@dataclass(frozen=True, slots=True)
class PickPress:
    """A choice. `card` is the message that asked for it, `value` says which one it is."""

    what: PickKind
    card: int
    value: str


PICK = Codec("pk", PickPress)


def digest(*names: str) -> str:
    """A few letters that stand for names of any length."""
    joined = "\0".join(names).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:DIGEST_CHARS]


def find(options: Iterable[str], value: str) -> str | None:
    """The option that a button stands for, if there still is such a one."""
    return next((option for option in options if digest(option) == value), None)


def pick_button(call: Call, what: PickKind, value: str, *, label: str) -> Button:
    """A button for one choice."""
    data = PICK.encode(PickPress(what, call.message.message_id, value))
    return Button(one_line(label, LABEL_CHARS) or "…", data)


async def offer(desk: Desk, call: Call, text: Text, *, buttons: Sequence[Button]) -> None:
    """Reply to a command with a choice, one button below the other."""
    card = Card(
        fit(text, desk.shop.transport(call.scope).max_units),
        tuple((button,) for button in buttons),
    )
    message_id = call.message.message_id
    key = _key(call.scope, message_id)
    await desk.shop.tell(call.scope, card, reply_to=message_id, key=key)


async def settle(
    tap: Tap, pick: PickPress, change: Callable[[sqlite3.Connection], None], *, said: Card
) -> bool:
    """Make the change that was chosen, if this is the first choice on its card; then say so."""
    db, key = tap.desk.shop.db, _key(tap.press.scope, pick.card)
    if not await db.read(lambda conn: outbox.knows(conn, key)):
        tap.too_late()
        return False
    tap.answer()

    def change_once(conn: sqlite3.Connection) -> bool:
        if not decide(conn, key):
            return False
        change(conn)
        return True

    chosen = await db.write(change_once)
    if chosen:
        tap.edit(said)
    return chosen


def decide(conn: sqlite3.Connection, key: str) -> bool:
    """Whether this is the first decision on the card that was sent under `key`."""
    is_open = outbox.knows(conn, key)
    if is_open:
        outbox.close_question(conn, key, now_ms=now_ms())
    return is_open


def gone(tap: Tap) -> None:
    """What was chosen is not there any more."""
    tap.answer(GONE)
    tap.clear()


def _key(scope: Scope, message_id: int) -> str:
    return f"pick:{scope.transport}:{scope.chat_id}:{message_id}"
