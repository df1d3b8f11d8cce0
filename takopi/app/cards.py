"""Cards that several commands and buttons have in common."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from takopi.app.desk import Desk
from takopi.app.pickers import digest
from takopi.app.tap import Tap
from takopi.core.ids import RunId, Scope
from takopi.core.outgoing import Attachment, Button, Card, Outgoing, Text
from takopi.present.cards import fit, notice
from takopi.present.compose import bold, pre, stack
from takopi.present.units import length
from takopi.runs.workshop import put
from takopi.store import outbox

DIFF_BYTES = 1_000_000
"""How much of a diff is sent: nobody reads more on a phone."""

SHORT_UNITS = 3000
"""A diff up to this length is read in the chat, a longer one as a file."""

NAME_CHARS = 60
SAME = "nothing has changed since this was shown."


def fitted(
    desk: Desk, scope: Scope, text: Text, *, buttons: Sequence[Sequence[Button]] = ()
) -> Card:
    """A card of one message, whatever the length of the text."""
    room = desk.shop.transport(scope).max_units
    return Card(fit(text, room), tuple(tuple(row) for row in buttons if row))


async def send_diff(tap: Tap, title: str, diff: str, *, run_id: RunId | None = None) -> None:
    """Show what was changed below the pressed message; the same changes only once."""
    scope, message_id = tap.press.scope, tap.press.message_id
    key = f"diff:{tap.key}:{digest(title, diff)}"

    def change(conn: sqlite3.Connection) -> None:
        if outbox.knows(conn, key):
            same = Outgoing(notice(f"{title}: {SAME}"), reply_to=message_id)
            put(conn, scope, same, kind="notice", run_id=run_id, key=f"{key}:same")
        else:
            message = _diff_message(title, diff, reply_to=message_id)
            put(conn, scope, message, kind="notice", run_id=run_id, key=key)

    await tap.desk.shop.db.write(change)
    tap.desk.shop.transport(scope).wake(scope.chat)


def _diff_message(title: str, diff: str, *, reply_to: int) -> Outgoing:
    if not diff.strip():
        return Outgoing(notice(f"{title}: nothing has changed."), reply_to=reply_to)
    text = stack([bold(title), pre(diff.rstrip("\n"), "diff")], "\n\n")
    if length(text.text) <= SHORT_UNITS:
        return Outgoing(Card(text), reply_to=reply_to)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", title)[:NAME_CHARS].strip("-.") or "changes"
    file = Attachment(f"{name}.diff", diff.encode("utf-8", "replace"))
    return Outgoing(Card(bold(title)), attachment=file, reply_to=reply_to)
