"""What the daemon says by itself, in the chat that it belongs to."""

from __future__ import annotations

import sqlite3

import structlog
import trio

from takopi.core.errors import TakopiError
from takopi.core.ids import Scope
from takopi.core.outgoing import Card
from takopi.present.cards import notice, refusal
from takopi.runs.workshop import Workshop
from takopi.store import scopes
from takopi.telegram.hooks import Hooks

TOPIC_GONE = "A topic is gone, and what it was bound to is forgotten. Its answers come here."

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.app")


async def tell_home(shop: Workshop, card: Card) -> None:
    """Say something in the chat that the daemon belongs to; what cannot be said is logged."""
    chat_id = shop.config().chat_id
    if chat_id is None:
        return
    for name in shop.transports:
        try:
            await shop.tell(Scope(name, chat_id), card)
        except TakopiError as error:
            log.warning("notice.failed", why=error.what)


class Troubles:
    """Turns what a transport reports into notices, once there is somebody to say them."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._shop: Workshop | None = None

    def tell(self, nursery: trio.Nursery, shop: Workshop) -> None:
        """Say it through `shop` from now on, in tasks of `nursery`."""
        self._nursery, self._shop = nursery, shop

    def hooks(self) -> Hooks:
        """What to hand to the transport."""
        return Hooks(
            on_trouble=self._trouble,
            on_topic_gone=self._topic_gone,
            on_chat_moved=self._chat_moved,
        )

    def _trouble(self, error: TakopiError) -> None:
        if self._nursery is not None and self._shop is not None:
            self._nursery.start_soon(tell_home, self._shop, refusal(error))

    def _chat_moved(self, old: Scope, new: Scope) -> None:
        if self._nursery is not None and self._shop is not None:
            text = (
                f"The group {old.chat_id} goes on as {new.chat_id}."
                f" Put `chat_id = {new.chat_id}` into the config to be heard there."
            )
            self._nursery.start_soon(tell_home, self._shop, notice(text))

    def _topic_gone(self, scope: Scope) -> None:
        if self._nursery is not None and self._shop is not None:
            self._nursery.start_soon(_forget_topic, self._shop, scope)


async def _forget_topic(shop: Workshop, scope: Scope) -> None:
    """A deleted topic ends its binding, with a notice in the chat."""

    def change(conn: sqlite3.Connection) -> bool:
        known = scopes.get(conn, scope) != scopes.Choices()
        scopes.put(conn, scope, scopes.Choices())
        return known

    try:
        if await shop.db.write(change):
            key = f"topic:{scope.chat_id}:{scope.topic_id}"
            await shop.tell(scope.chat, notice(TOPIC_GONE), key=key)
    except TakopiError as error:
        log.warning("topic.not_forgotten", why=error.what)
