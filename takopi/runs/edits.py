"""The one progress message of a run: shown at once, edited as things change, gone at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
import trio

from takopi.core.errors import TakopiError
from takopi.core.ids import MessageRef, Scope
from takopi.core.outgoing import Card, Outgoing
from takopi.core.ports import Transport

EDIT_S = 0.25
"""Pause between two looks at what has changed: faster than any chat lets us edit."""

TICK_S = 10.0
"""How often the clock on the card moves on while nothing else happens."""

CLOSE_S = 1.0
"""How long the end of a run waits to learn which message its progress was."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.runs")


class Face:
    """What people see of a run while it is not done. `render` says how it reads now.

    `settled` is set once it is written down which message it is, or there will be none.
    """

    def __init__(
        self,
        transport: Transport,
        scope: Scope,
        *,
        reply_to: int | None,
        ref: MessageRef | None,
        render: Callable[[], Card],
        on_shown: Callable[[MessageRef], Awaitable[None]],
    ) -> None:
        self.ref = ref
        self.settled = trio.Event()
        self._transport = transport
        self._scope = scope
        self._reply_to = reply_to
        self._render = render
        self._on_shown = on_shown
        self._changed = trio.Event()
        self._life = trio.CancelScope()
        self._ended = trio.Event()
        self._abandoned = False

    def touch(self) -> None:
        """Something has changed."""
        self._changed.set()

    async def show(self) -> None:
        """Keep the message up to date until `close`."""
        try:
            with self._life:
                await self._keep_up()
        finally:
            self.settled.set()
            self._ended.set()
            if self._abandoned and self.ref is not None:
                self._transport.delete(self.ref)

    async def close(self) -> MessageRef | None:
        """Edit nothing from now on, and say which message there is to remove, if there is one."""
        self._life.cancel()
        with trio.move_on_after(CLOSE_S):
            await self._ended.wait()
        self._abandoned = not self._ended.is_set()
        return self.ref

    async def _keep_up(self) -> None:
        shown = self._render()
        if self.ref is None:
            message = Outgoing(shown, reply_to=self._reply_to, silent=True)
            try:
                self.ref = await self._transport.send(self._scope, message)
                await self._on_shown(self.ref)
            except TakopiError as error:
                # Progress is best effort: the answer will come all the same.
                log.warning("progress.failed", why=error.what)
                if self.ref is None:
                    return
        else:
            self._transport.edit(self.ref, shown)
        self.settled.set()
        while True:
            await trio.sleep(EDIT_S)
            with trio.move_on_after(TICK_S):
                await self._changed.wait()
            self._changed = trio.Event()
            # A change and the end may come at the same moment.
            await trio.lowlevel.checkpoint_if_cancelled()
            card = self._render()
            if card != shown:
                self._transport.edit(self.ref, card)
                shown = card
