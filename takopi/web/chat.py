"""The one chat of the page: private, with whoever holds the token."""

from __future__ import annotations

from takopi.core.ids import MessageRef, Scope

NAME = "web"
OWNER_ID = 1
"""A private chat has the number of the only person in it."""

SCOPE = Scope(NAME, OWNER_ID)


def ref(message_id: int) -> MessageRef:
    """A message of the page, as a key."""
    return MessageRef(NAME, OWNER_ID, message_id)
