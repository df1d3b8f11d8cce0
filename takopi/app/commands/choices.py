"""What holds in a chat or topic: what people chose there, and what follows where they did not."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace

from takopi.app.desk import Desk
from takopi.config.loaded import Config
from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.ids import EngineId, Scope
from takopi.core.messages import IncomingMessage
from takopi.projects.names import check_branch
from takopi.projects.registry import find_project
from takopi.routing.facts import Facts
from takopi.routing.resolve import Resolved, resolve
from takopi.runs.request import FALLBACKS
from takopi.store import scopes
from takopi.store.scopes import Choices

_CONTEXT = re.compile(r"/?([^\s@]+)(?:\s*@\s*(\S+))?")


@dataclass(frozen=True, slots=True)
class Here:
    """A scope, its own choices, and for a topic those of its chat."""

    scope: Scope
    own: Choices
    chat: Choices

    @property
    def name(self) -> str:
        """What a person calls it."""
        return "chat" if self.scope.topic_id is None else "topic"


async def look(desk: Desk, scope: Scope) -> Here:
    """What was chosen in a scope."""

    def read(conn: sqlite3.Connection) -> Here:
        chat = Choices() if scope.topic_id is None else scopes.get(conn, scope.chat)
        return Here(scope, scopes.get(conn, scope), chat)

    return await desk.shop.db.read(read)


def next_run(desk: Desk, here: Here) -> Resolved:
    """What a message without any directive would start here as a new conversation.

    `Refused` where it would be.
    """
    engines = desk.shop.engines
    scope = here.scope
    message = IncomingMessage(
        scope.transport, scope.chat_id, 0, "", None, None, None, thread_id=scope.topic_id
    )
    known = (EngineId(name) for name in FALLBACKS)
    return resolve(
        Facts(message=message, scope=replace(here.own, thread=None), chat=here.chat),
        desk.config,
        engines=tuple(engines),
        bot_name=None,
        fallback_engine=next((each for each in known if engines.is_installed(each)), None),
    )


def next_engine(desk: Desk, here: Here) -> EngineId | None:
    """The engine of that run; None where there would be none."""
    try:
        return next_run(desk, here).engine
    except Refused:
        return None


def change_choices(
    conn: sqlite3.Connection, scope: Scope, change: Callable[[Choices], Choices]
) -> None:
    """Choose something else for a scope, and leave the rest as it was."""
    scopes.put(conn, scope, change(scopes.get(conn, scope)))


def read_context(config: Config, words: str, *, usage: str) -> Context:
    """`<project> @branch` as a person types it, spelled as the project is; refused if it is not."""
    found = _CONTEXT.fullmatch(words)
    if found is None:
        raise Refused("that names no project", way_out=usage)
    project = find_project(config, found[1])
    if found[2] is not None:
        check_branch(found[2])
    return Context(project.alias, found[2])
