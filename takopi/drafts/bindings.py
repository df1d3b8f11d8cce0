"""Which tmux window the prompts of a scope go to, until it is detached or the window is gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

import structlog
import trio

from takopi.core.errors import StoreFailed
from takopi.core.ids import Scope
from takopi.core.outgoing import Outgoing
from takopi.drafts.face import Faces, clear
from takopi.drafts.ports import Ports
from takopi.drafts.tmux import Target, Window, WindowGone, read_target
from takopi.present.cards import notice
from takopi.store import scopes
from takopi.store.drafts import Draft

STORE_PAUSE_S = 2.0
GONE = "The tmux window `{label}` is gone: this {name} is detached, and its draft is cleared."

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.drafts")


class Bindings:
    """The windows that scopes are bound to. `stop` ends what is being done in a scope."""

    def __init__(
        self,
        nursery: trio.Nursery,
        ports: Ports,
        faces: Faces,
        *,
        stop: Callable[[Scope], None],
    ) -> None:
        self._nursery = nursery
        self._ports = ports
        self._faces = faces
        self._stop = stop
        self._watches: dict[Scope, trio.CancelScope] = {}

    def attached(self, scope: Scope, target: Target) -> None:
        """The scope was bound to a window: look after it."""
        self.let_go(scope)
        cancel = self._watches[scope] = trio.CancelScope()
        self._nursery.start_soon(self._await_end, scope, target, cancel)
        self._faces.touch(scope)

    async def detach(self, scope: Scope) -> Target | None:
        """Unbind a scope and clear its draft; returns what it was bound to."""

        def change(conn: sqlite3.Connection) -> tuple[Target | None, Draft | None]:
            target = read_target(scopes.get(conn, scope).target)
            return target, None if target is None else _unbind(conn, scope)

        target, draft = await self._ports.db.write(change)
        if target is not None:
            self._stop(scope)
            self.let_go(scope)
        if draft is not None:
            self._faces.leave(draft)
        return target

    async def target(self, scope: Scope) -> Target | None:
        """The window that a scope is bound to."""
        choices = await self._ports.db.read(lambda conn: scopes.get(conn, scope))
        return read_target(choices.target)

    async def windows(self) -> tuple[Window, ...]:
        """Every tmux window there is."""
        return await self._ports.tmux.windows()

    async def window(self, words: str) -> Window:
        """The window that a person means by `session` or `session:window`."""
        return await self._ports.tmux.named(words)

    async def screen(self, scope: Scope, target: Target) -> str:
        """What the scope's window shows; a window that is gone detaches the scope."""
        try:
            return await self._ports.tmux.screen(target)
        except WindowGone as error:
            gone = error
        await self.detach_gone(scope, target)
        raise gone

    def let_go(self, scope: Scope) -> None:
        """Nobody needs to know any more what becomes of the scope's window."""
        if scope in self._watches:
            self._watches.pop(scope).cancel()

    async def _await_end(self, scope: Scope, target: Target, cancel: trio.CancelScope) -> None:
        with cancel:
            await self._ports.tmux.wait_gone(target)
            while True:
                try:
                    await self.detach_gone(scope, target)
                    return
                except StoreFailed as error:
                    log.warning("window.not_detached", why=error.what)
                await trio.sleep(STORE_PAUSE_S)

    async def detach_gone(self, scope: Scope, target: Target) -> None:
        """The window is gone: unbind the scope, once, and say so."""
        name = "chat" if scope.topic_id is None else "topic"
        message = Outgoing(notice(GONE.format(label=target.label, name=name)))

        def change(conn: sqlite3.Connection) -> tuple[bool, Draft | None]:
            if read_target(scopes.get(conn, scope).target) != target:
                return False, None
            draft = _unbind(conn, scope)
            self._ports.put(conn, scope, message)
            return True, draft

        detached, draft = await self._ports.db.write(change)
        if draft is not None:
            self._faces.leave(draft)
        if detached:
            self._ports.transport(scope).wake(scope.chat)
            self._stop(scope)


def bind(conn: sqlite3.Connection, scope: Scope, target: Target) -> None:
    """Write down where the prompts of a scope go."""
    scopes.put(conn, scope, replace(scopes.get(conn, scope), target=str(target)))


def _unbind(conn: sqlite3.Connection, scope: Scope) -> Draft | None:
    scopes.put(conn, scope, replace(scopes.get(conn, scope), target=None, drafting=False))
    return clear(conn, scope)
