"""Sessions in the chats: what they are made of is loaded with the first of them, and kept.

Most people have none open most of the time, and a daemon without one starts sooner and is smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from takopi.app.drafting import Admins
from takopi.core.messages import Press
from takopi.kit.late import load
from takopi.oneshot.port import Oneshot
from takopi.runs.workshop import Workshop
from takopi.store import reviews
from takopi.turns.buttons import ReviewPress

if TYPE_CHECKING:
    from takopi.turns.chat import TurnChat

_ROOM = "takopi.app.sessions"


class Turns:
    """The way to the sessions. `chat` is None as long as nobody has had one."""

    def __init__(
        self,
        nursery: trio.Nursery,
        shop: Workshop,
        admins: Admins,
        *,
        oneshot: Oneshot,
        environ: Mapping[str, str],
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._nursery = nursery
        self._shop = shop
        self._admins = admins
        self._oneshot = oneshot
        self._environ = environ
        self._secrets = secrets
        self.chat: TurnChat | None = None

    async def open(self) -> TurnChat:
        """The sessions, whether there are any or not."""
        if self.chat is None:
            await load(_ROOM)
        if self.chat is None:
            from takopi.app.sessions import turn_ports
            from takopi.turns.chat import TurnChat

            ports = turn_ports(
                self._shop,
                self._admins,
                oneshot=self._oneshot,
                environ=self._environ,
                secrets=self._secrets,
            )
            self.chat = TurnChat(self._nursery, ports)
        return self.chat

    async def recover(self) -> None:
        """After a start: go on with what was open."""
        if await self._shop.db.read(reviews.are_any):
            await (await self.open()).recover()

    async def drain(self) -> None:
        """Return when nothing is carried out; the caller sets the deadline."""
        if self.chat is not None:
            await self.chat.drain()

    async def press(self, press: Press, what: ReviewPress) -> None:
        """Do what was pressed; a card may be older than this process."""
        await (await self.open()).press(press, what)
