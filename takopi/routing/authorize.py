"""Lets in only those who were named, only in chats that were named: anything else is a stranger."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from takopi.config.loaded import Config

# Telegram's own accounts, which speak for a group, for a channel, or for a channel's discussion:
# whoever sits behind them is not known, whatever the config says.
_NOBODY = frozenset({1087968824, 136817688, 777000})


@dataclass(frozen=True, slots=True)
class Envelope:
    """Who sent something, and to which chat: all that may be read before the gate.

    None stands for a sender who is not a person, or does not say who: a channel, an anonymous
    administrator. A chat that is not named is None, too.
    """

    sender_id: int | None
    chat_id: int | None


class Gate:
    """Who is let in. One for each config: a changed config gets a new gate."""

    def __init__(self, config: Config) -> None:
        chats = (config.chat_id, *(project.chat_id for project in config.projects.values()))
        self._chats = frozenset(chat for chat in chats if chat)
        self._admins = config.admin_user_ids
        self._people = config.allowed_user_ids | config.admin_user_ids

    def allows(self, envelope: Envelope) -> bool:
        """Whether both the sender and the chat are allowed."""
        sender, chat = envelope.sender_id, envelope.chat_id
        if sender is None or chat is None or sender in _NOBODY or chat not in self._chats:
            return False
        # A private chat has the number of the only person in it, and a group's is negative.
        return sender == chat if chat > 0 else sender in self._people

    def is_admin(self, envelope: Envelope) -> bool:
        """Whether the sender may decide for others: in a private chat, whoever it is with."""
        if not self.allows(envelope):
            return False
        return envelope.sender_id == envelope.chat_id or envelope.sender_id in self._admins


class Strangers:
    """Remembers who was turned away, so that the log names each of them once.

    Of more than `capacity` the one not seen for longest is forgotten, and would be named again.
    """

    def __init__(self, capacity: int = 1000) -> None:
        self._capacity = capacity
        self._seen: OrderedDict[Envelope, None] = OrderedDict()

    def is_new(self, envelope: Envelope) -> bool:
        """Whether this sender was not turned away in this chat before; from now on, it was."""
        new = envelope not in self._seen
        self._seen[envelope] = None
        self._seen.move_to_end(envelope)
        if len(self._seen) > self._capacity:
            self._seen.popitem(last=False)
        return new
