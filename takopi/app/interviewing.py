"""Hands to the interviews what they need: folders, branches, a model, and a way to start a run."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from takopi.app.tap import Tap
from takopi.app.turns import Turns
from takopi.config.loaded import Config
from takopi.core.errors import TakopiError
from takopi.core.ids import EngineId, MessageRef, Scope
from takopi.core.outgoing import Outgoing
from takopi.core.ports import Transport
from takopi.engines.claude.spec import ClaudeSettings
from takopi.engines.spec import EngineSpec
from takopi.interview.plan_file import slug
from takopi.interview.session import Order, Session
from takopi.interview.view import InterviewPress
from takopi.oneshot.choose import open_oneshot
from takopi.oneshot.cli import Claude
from takopi.oneshot.port import Oneshot
from takopi.projects.git import git_deadline
from takopi.projects.registry import find_project
from takopi.projects.repository import checked_out_branch, find_repository
from takopi.runs.request import Requests
from takopi.runs.workshop import Workshop, put
from takopi.store import outbox
from takopi.store.ledger import NewRun

BRANCH_S = 10.0
"""How long git may take to say which branch is checked out."""


@dataclass(frozen=True, slots=True)
class InterviewHost:
    """The rest of takopi, as interviews see it."""

    shop: Workshop
    requests: Requests
    turns: Turns

    def config(self) -> Config:
        """The config as it is now."""
        return self.shop.config()

    def transport(self, scope: Scope) -> Transport | None:
        """Where the people of this scope are; None if that is not there any more."""
        return self.shop.transports.get(scope.transport)

    def takes_system(self, engine: EngineId) -> bool:
        """Whether this engine takes an instruction beside the prompt, in no thread of its own."""
        entry = self.shop.engines.catalog.entries.get(engine)
        return isinstance(entry, EngineSpec) and entry.takes_system

    async def find_cwd(self, order: Order) -> Path:
        """The folder that the order is done in; its worktree is made if it is missing."""
        if order.cwd is not None and await trio.Path(order.cwd).is_dir():
            return Path(order.cwd)
        if order.context is None:
            return self.shop.start_cwd
        project = find_project(self.shop.config(), order.context.project)
        return await self.shop.worktrees.prepare(project, order.context.branch)

    async def find_branch(  # ruff: ignore[no-self-use] a Host
        self, order: Order, cwd: Path
    ) -> str:
        """The branch that is worked on there; empty if there is none."""
        if order.context is not None and order.context.branch is not None:
            return order.context.branch
        try:
            with git_deadline(BRANCH_S):
                return await checked_out_branch(await find_repository(cwd)) or ""
        except TakopiError:
            return ""

    async def start(self, session: Session, prompt: str, *, said: Outgoing) -> None:
        """Start the run of this session and say so, under its end key and only once."""
        if self.config().interview.on_confirm == "session":
            await self._begin_session(session, prompt, said=said)
            return
        order, confirmed = session.order, session.confirmed_message_id
        ref = None
        if confirmed is not None:
            ref = MessageRef(session.transport, session.chat_id, confirmed)
        new = NewRun(
            scope=session.scope,
            prompt=prompt,
            engine=EngineId(order.engine),
            model=order.model,
            thread=order.token,
            context=order.context,
            cwd=None if order.cwd is None else Path(order.cwd),
            prompt_ref=ref,
            sender_id=session.user_id,
            interactive=False,
        )
        await self.requests.start(new, key=session.end_key, said=said)

    async def _begin_session(self, session: Session, prompt: str, *, said: Outgoing) -> None:
        """Have the first turn of a session planned with what was asked and answered."""
        turns = await self.turns.open()
        from takopi.app.sessions import find_place

        order = session.order
        cwd = await self.find_cwd(order)
        place = await find_place(self.shop, session.scope, order.context, cwd=cwd)

        def also(conn: sqlite3.Connection) -> bool:
            if outbox.knows(conn, session.end_key):
                return False
            put(conn, session.scope, said, kind="notice", key=session.end_key)
            return True

        name = slug(session.description) or slug(session.task) or "plan"
        await turns.begin(place, name, prompt, also=also)


@asynccontextmanager
async def open_questions(
    shop: Workshop, *, environ: Mapping[str, str], secrets: tuple[str, ...]
) -> AsyncGenerator[Oneshot, None]:
    """The model that questions come from, for as long as the block lasts."""
    config = shop.config()
    settings = config.engines.get("claude")
    claude = Claude()
    if isinstance(settings, ClaudeSettings):
        claude = Claude(settings.command or "claude", settings.env, settings.use_api_billing)
    async with open_oneshot(
        config.oneshot,
        shop.engines.keeper,
        claude=claude,
        environ=environ,
        secrets=secrets,
        grace_s=config.limits.grace_s,
        is_demo=config.default_engine == "demo",
    ) as oneshot:
        yield oneshot


async def pressed(tap: Tap, what: InterviewPress) -> None:
    """A button of an interview was pressed."""
    await tap.desk.interviews.press(tap.press, what.what, answer=tap.answer)
