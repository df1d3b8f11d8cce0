"""What the daemon says by itself, in the chat that it belongs to."""

from __future__ import annotations

import sqlite3

import structlog
import trio

from takopi.app.turns import Turns
from takopi.core.errors import TakopiError
from takopi.core.ids import MessageRef, Scope
from takopi.core.outgoing import Card
from takopi.drafts.service import Drafts
from takopi.present.cards import notice, refusal
from takopi.runs.workshop import Workshop
from takopi.store import scopes
from takopi.store.drafts import is_card_key
from takopi.telegram.hooks import Hooks
from takopi.telegram.parse import NAME
from takopi.web import chat as web

TOPIC_GONE = "A topic is gone, and what it was bound to is forgotten. Its answers come here."

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.app")


def homes(shop: Workshop) -> tuple[Scope, ...]:
    """The chat that the daemon belongs to, on each transport."""
    chat_id = shop.config().chat_id
    own = {web.NAME: web.SCOPE} | ({} if chat_id is None else {NAME: Scope(NAME, chat_id)})
    return tuple(own[name] for name in shop.transports if name in own)


async def tell_home(shop: Workshop, card: Card) -> None:
    """Say something in the chat that the daemon belongs to; what cannot be said is logged."""
    for scope in homes(shop):
        try:
            await shop.tell(scope, card)
        except TakopiError as error:
            log.warning("notice.failed", why=error.what)


class Troubles:
    """Turns what a transport reports into notices, once there is somebody to say them."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._shop: Workshop | None = None
        self._drafts: Drafts | None = None
        self._turns: Turns | None = None

    def tell(self, nursery: trio.Nursery, shop: Workshop) -> None:
        """Say it through `shop` from now on, in tasks of `nursery`."""
        self._nursery, self._shop = nursery, shop

    def watch(self, drafts: Drafts, turns: Turns) -> None:
        """Let the drafts and the turns know what becomes of their cards from now on."""
        self._drafts, self._turns = drafts, turns

    def hooks(self) -> Hooks:
        """What to hand to the transport."""
        return Hooks(
            on_trouble=self._trouble,
            on_topic_gone=self._topic_gone,
            on_chat_moved=self._chat_moved,
            on_edit_lost=self._edit_lost,
            on_sent=self._sent,
            on_delete_refused=self._delete_refused,
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
            if self._drafts is not None:
                self._nursery.start_soon(_follow, self._drafts)
            if self._turns is not None:
                self._nursery.start_soon(_follow_turns, self._turns, old, new)

    def _topic_gone(self, scope: Scope) -> None:
        if self._nursery is not None and self._shop is not None:
            self._nursery.start_soon(_forget_topic, self._shop, scope, self._drafts)
            if self._turns is not None:
                self._nursery.start_soon(_follow_turns, self._turns, scope, scope.chat)

    def _edit_lost(self, ref: MessageRef, _card: Card) -> None:
        if self._nursery is not None and self._drafts is not None:
            self._nursery.start_soon(_replace_card, self._drafts, ref)
        if self._nursery is not None and self._turns is not None:
            self._nursery.start_soon(_replace_turn_card, self._turns, ref)

    def _sent(self, key: str, ref: MessageRef) -> None:
        if self._nursery is not None and self._drafts is not None and is_card_key(key):
            self._nursery.start_soon(_dress_card, self._drafts, ref)

    def _delete_refused(self, ref: MessageRef) -> None:
        if self._drafts is not None:
            self._drafts.faces.not_deleted(ref)


async def _replace_card(drafts: Drafts, ref: MessageRef) -> None:
    try:
        await drafts.faces.lost(ref)
    except TakopiError as error:
        log.warning("card.not_replaced", why=error.what)


async def _dress_card(drafts: Drafts, ref: MessageRef) -> None:
    try:
        await drafts.faces.arrived(ref)
    except TakopiError as error:
        log.warning("card.not_dressed", why=error.what)


async def _follow(drafts: Drafts) -> None:
    """What was put together in a chat that moved goes on in the new one."""
    try:
        await drafts.resume()
    except TakopiError as error:
        log.warning("drafts.not_followed", why=error.what)


async def _replace_turn_card(turns: Turns, ref: MessageRef) -> None:
    try:
        if turns.chat is not None:
            await turns.chat.lost(ref)
    except TakopiError as error:
        log.warning("card.not_replaced", why=error.what)


async def _follow_turns(turns: Turns, old: Scope, new: Scope) -> None:
    """Sessions that people talk about go on where these people are now."""
    try:
        if turns.chat is not None:
            await turns.chat.follow(old, new)
    except TakopiError as error:
        log.warning("turns.not_followed", why=error.what)


async def _forget_topic(shop: Workshop, scope: Scope, drafts: Drafts | None) -> None:
    """A deleted topic ends its binding, with a notice in the chat."""

    def change(conn: sqlite3.Connection) -> bool:
        known = scopes.get(conn, scope) != scopes.Choices()
        scopes.put(conn, scope, scopes.Choices())
        return known

    try:
        if drafts is not None:
            await drafts.forget(scope)
        if await shop.db.write(change):
            key = f"topic:{scope.chat_id}:{scope.topic_id}"
            await shop.tell(scope.chat, notice(TOPIC_GONE), key=key)
    except TakopiError as error:
        log.warning("topic.not_forgotten", why=error.what)
