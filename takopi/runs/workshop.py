"""What every run needs to do its work, put together once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio

from takopi.config.loaded import Config
from takopi.core.context import Context
from takopi.core.ids import EngineId, ResumeToken, RunId, Scope
from takopi.core.outgoing import Card, Outgoing, Text
from takopi.core.ports import Transport
from takopi.engines.registry import Engines
from takopi.files.spool import Spool
from takopi.kit.clock import now_ms
from takopi.mcp.servers import McpServers
from takopi.present.footer import footer
from takopi.projects.worktrees import Worktrees
from takopi.routing.ctx import format_ctx
from takopi.store import outbox
from takopi.store.database import Database
from takopi.store.outbox import SendKind

SETTLE_S = 10.0
"""How long a reply to an unknown message waits for what is on its way to the chat."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """The parts that runs share. `config` gives the config as it is now; `start_cwd` is where a
    run works that has no project; `private` is what no chat gets to see of this machine. Files on
    their way lie in the `spool`."""

    db: Database
    engines: Engines
    worktrees: Worktrees
    transports: Mapping[str, Transport]
    config: Callable[[], Config]
    start_cwd: Path
    spool: Spool
    mcp: McpServers | None = None
    private: tuple[Path, ...] = ()

    def transport(self, scope: Scope) -> Transport:
        """Where the people of this scope are."""
        return self.transports[scope.transport]

    async def settle(self, chat: Scope) -> None:
        """Wait, though not for long, until it is known which message what is on its way became.

        A reply may be here before that.
        """
        with trio.move_on_after(SETTLE_S):
            await self.transport(chat).settle(chat)

    def footer(self, engine: EngineId, context: Context | None, thread: ResumeToken | None) -> Text:
        """The last lines of everything a run says."""
        ctx_line = None if context is None else format_ctx(context)
        resume_line = None if thread is None else self.engines.get(engine).resume_line(thread)
        return footer(ctx_line, resume_line)

    async def tell(
        self, scope: Scope, card: Card, *, reply_to: int | None = None, key: str | None = None
    ) -> None:
        """Say something that must arrive and belongs to no run; a `key` says it once."""
        message = Outgoing(card, reply_to=reply_to)
        await self.db.write(lambda conn: put(conn, scope, message, kind="notice", key=key))
        self.transport(scope).wake(scope.chat)


def put(
    conn: sqlite3.Connection,
    scope: Scope,
    message: Outgoing,
    *,
    kind: SendKind,
    run_id: RunId | None = None,
    key: str | None = None,
) -> None:
    """Put a message that must arrive into the store, with whatever else this transaction does."""
    payload = msgspec.msgpack.encode(message)
    outbox.add(
        conn,
        scope,
        kind=kind,
        payload=payload,
        now_ms=now_ms(),
        run_id=run_id,
        dedupe_key=key,
        spooled=None if message.attachment is None else message.attachment.spooled,
    )
