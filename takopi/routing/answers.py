"""Texts that were asked for: which messages may be one, and how it is handed to who asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from takopi.core.messages import IncomingMessage
from takopi.routing.facts import reply_ref
from takopi.store import threads
from takopi.store.database import Database

Take: TypeAlias = Callable[[], Awaitable[None]]
"""Takes the text of the message that it was made for."""


async def may_answer(db: Database, message: IncomingMessage) -> bool:
    """Whether the message is a text, and no reply to a run."""
    ref = reply_ref(message)
    if ref is None or not message.text.strip():
        return bool(message.text.strip())
    return await db.read(lambda conn: threads.run_of(conn, ref)) is None
