"""Configs, messages and engines for the tests of routing."""

from __future__ import annotations

from pathlib import Path

from takopi.config.load import parse
from takopi.config.loaded import Config, Names
from takopi.config.schema import EngineSettings
from takopi.core.context import Context
from takopi.core.events import Usage
from takopi.core.ids import EngineId, MessageRef, ResumeToken, RunId, Scope
from takopi.core.messages import IncomingMessage
from takopi.engines.claude.spec import SPEC as CLAUDE_SPEC
from takopi.engines.codex.spec import SPEC as CODEX_SPEC
from takopi.engines.pi.spec import SPEC as PI_SPEC
from takopi.routing.facts import Facts
from takopi.routing.resolve import Resolved, resolve
from takopi.store.ledger import Run, RunState
from takopi.store.scopes import Choices
from takopi.store.threads import Thread

ENGINES = (CLAUDE_SPEC, CODEX_SPEC, PI_SPEC)
CLAUDE, CODEX, PI = (spec.id for spec in ENGINES)
BOT = "takopi_bot"


def config_of(text: str) -> Config:
    """The config that a file of this text means."""
    names = Names(
        engines={spec.id: EngineSettings for spec in ENGINES}, commands=frozenset({"cancel"})
    )
    return parse(text.encode(), names, environ={})


PROJECTS = """
[projects.z80]
path = "/dev/z80"

[projects.Web]
path = "/dev/web"
default_engine = "pi"
"""


WITH_PROJECTS = config_of(PROJECTS)
WITH_DEFAULT = config_of('default_project = "Z80"\n' + PROJECTS)
CODEX_BY_DEFAULT = config_of('default_engine = "codex"\n' + PROJECTS)
ABC = ResumeToken(CODEX, "abc")
XYZ = ResumeToken(CLAUDE, "xyz")
PLUGIN = EngineId("plugin")
"""An engine that is not here."""


def message_of(
    text: str = "fix tests",
    *,
    reply_to: int | None = None,
    reply_text: str | None = None,
    topic: int | None = None,
    chat_id: int = 1,
    quote: str | None = None,
) -> IncomingMessage:
    """A message with number 100."""
    return IncomingMessage(
        transport="telegram",
        chat_id=chat_id,
        message_id=100,
        text=text,
        reply_to_message_id=reply_to,
        reply_to_text=reply_text,
        sender_id=1,
        thread_id=topic,
        quote=quote,
    )


def run_of(
    state: RunState = "running",
    *,
    engine: EngineId = CLAUDE,
    thread: ResumeToken | None = None,
    context: Context | None = None,
    cwd: Path | None = None,
) -> Run:
    """Run 7 of chat 1."""
    return Run(
        id=RunId(7),
        state=state,
        scope=Scope("telegram", 1),
        prompt="before",
        engine=engine,
        model=None,
        thread=thread,
        context=context,
        cwd=cwd,
        prompt_ref=MessageRef("telegram", 1, 50),
        progress_ref=None,
        inbox_id=None,
        retry_of=None,
        created_ms=0,
        started_ms=None,
        ended_ms=None,
        answer=None,
        error=None,
        usage=Usage(),
    )


def thread_at(token: ResumeToken, context: Context | None, cwd: str = "/dev/z80") -> Thread:
    """What the store remembers of a thread."""
    return Thread(token, context, Path(cwd), used_ms=0)


OF_CODEX = thread_at(ABC, Context("z80", "feat"), "/dev/z80/.worktrees/feat")


def resolved(
    message: IncomingMessage,
    config: Config = WITH_PROJECTS,
    *,
    replied_run: Run | None = None,
    replied_thread: ResumeToken | None = None,
    threads: tuple[Thread, ...] = (),
    scope: Choices | None = None,
    chat: Choices | None = None,
    session_run: Run | None = None,
    fallback_engine: EngineId | None = CLAUDE,
) -> Resolved:
    """What the message asks for, given what the store says."""
    facts = Facts(
        message=message,
        replied_run=replied_run,
        replied_thread=replied_thread,
        threads={thread.token: thread for thread in threads},
        scope=scope or Choices(),
        chat=chat or Choices(),
        session_run=session_run,
    )
    return resolve(facts, config, engines=ENGINES, bot_name=BOT, fallback_engine=fallback_engine)
