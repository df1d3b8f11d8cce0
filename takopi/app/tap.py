"""One press of a button: answered once, and what cannot be done after that is told in the chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from takopi.app.desk import Desk
from takopi.core.errors import StoreFailed, TakopiError
from takopi.core.ids import Scope
from takopi.core.messages import Press
from takopi.core.outgoing import Card
from takopi.present.cards import refusal
from takopi.runs.asks import TOO_LATE
from takopi.telegram.buttons import Handler

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ELSEWHERE = "This button belongs to another chat."

T = TypeVar("T", bound="DataclassInstance")


class Tap:
    """A press that is being handled."""

    def __init__(self, desk: Desk, press: Press) -> None:
        self.desk = desk
        self.press = press
        self.answered = False
        self._transport = desk.shop.transport(press.scope)

    @property
    def key(self) -> str:
        """Names the pressed message among those of all transports."""
        ref = self.press.ref
        return f"{ref.transport}:{ref.chat_id}:{ref.message_id}"

    def answer(self, text: str = "") -> None:
        """Let the button stop waiting; a chat shows the first answer only, so there is only one."""
        if not self.answered:
            self.answered = True
            self._transport.acknowledge(self.press, text)

    def too_late(self) -> None:
        """Somebody has decided before."""
        self.answer(TOO_LATE)
        self.clear()

    def is_from(self, scope: Scope) -> bool:
        """Whether the press came from this chat; where it did not, it is told so."""
        if self.press.scope.chat == scope.chat:
            return True
        self.answer(ELSEWHERE)
        return False

    def edit(self, card: Card) -> None:
        """Let the pressed message read differently."""
        self._transport.edit(self.press.ref, card)

    def clear(self) -> None:
        """Leave the pressed message nothing to press."""
        self._transport.clear_buttons(self.press.ref)

    async def say(self, card: Card) -> None:
        """Say something below the pressed message."""
        await self.desk.say(self.press.scope, card, reply_to=self.press.message_id)


def attended(desk: Desk, handle: Callable[[Tap, T], Awaitable[None]]) -> Handler[T]:
    """A handler whose refusals are told: on the button, or in the chat once that was answered."""

    async def attend(press: Press, what: T) -> None:
        tap = Tap(desk, press)
        try:
            await handle(tap, what)
        except StoreFailed:
            raise
        except TakopiError as error:
            if not tap.answered:
                raise
            await tap.say(refusal(error))
        tap.answer()

    return attend
