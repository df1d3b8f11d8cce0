"""One message becomes a message in the chat, in the plainest form if it must be, or an error.

A refusal means that nothing was sent, so the next form is tried: without marks, then as a file,
then as a file without buttons. A topic that is gone sends it to its chat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from takopi.core.errors import Rejected
from takopi.core.ids import Scope
from takopi.core.outgoing import Attachment, Card, Outgoing, Text
from takopi.telegram.api import Api
from takopi.telegram.render import repeated

FILE_NAME = "message.md"


async def deliver(
    api: Api,
    scope: Scope,
    message: Outgoing,
    *,
    maybe_sent: bool,
    on_topic_gone: Callable[[Scope], None],
) -> int:
    """Send the message and return its number; `Rejected` when no form of it was taken."""
    if maybe_sent:
        message = replace(message, card=replace(message.card, text=repeated(message.card.text)))
    refusal = None
    for form in _forms(message):
        try:
            return await _send(api, scope, form)
        except Rejected as error:
            refusal = error
        if refusal.reason in {"topic_gone", "topic_closed"} and scope.topic_id is not None:
            if refusal.reason == "topic_gone":
                on_topic_gone(scope)
            return await deliver(
                api, scope.chat, message, maybe_sent=False, on_topic_gone=on_topic_gone
            )
    assert refusal is not None  # ruff: ignore[assert] there is always a first form
    raise refusal


async def show(api: Api, chat_id: int, message_id: int, *, card: Card) -> None:
    """Let a message read as the card does; `Rejected` with its reason when that cannot be."""
    try:
        await api.edit_message_text(chat_id, message_id, card=card)
        return
    except Rejected as error:
        refusal = error
    if refusal.reason == "no_text":
        # It went out as a file: its words cannot change, its buttons can.
        await _show_buttons(api, chat_id, message_id, card=card)
    elif refusal.reason == "other" and card.text.marks:
        plain = replace(card, text=Text(card.text.text))
        await api.edit_message_text(chat_id, message_id, card=plain)
    elif refusal.reason != "not_modified":
        raise refusal


async def clear(api: Api, chat_id: int, message_id: int) -> None:
    """Take the buttons off a message and leave its words; it may have had none."""
    await _show_buttons(api, chat_id, message_id, card=Card(Text("")))


async def _show_buttons(api: Api, chat_id: int, message_id: int, *, card: Card) -> None:
    try:
        await api.edit_message_reply_markup(chat_id, message_id, buttons=card.buttons)
    except Rejected as error:
        if error.reason != "not_modified":
            raise


def _forms(message: Outgoing) -> Iterator[Outgoing]:
    yield message
    card = message.card
    if card.text.marks:
        card = replace(card, text=Text(card.text.text))
        yield replace(message, card=card)
    if message.attachment is None:
        data = card.text.text.encode(errors="replace")
        card = replace(card, text=Text(""))
        message = replace(message, card=card, attachment=Attachment(FILE_NAME, data))
        yield message
    if card.buttons:
        yield replace(message, card=replace(card, buttons=()))


async def _send(api: Api, scope: Scope, message: Outgoing) -> int:
    if message.attachment is None:
        return await api.send_message(
            scope.chat_id,
            message.card.text,
            buttons=message.card.buttons,
            topic_id=scope.topic_id,
            reply_to=message.reply_to,
            silent=message.silent,
        )
    return await api.send_document(
        scope.chat_id,
        message.attachment,
        text=message.card.text,
        buttons=message.card.buttons,
        topic_id=scope.topic_id,
        reply_to=message.reply_to,
        silent=message.silent,
    )
