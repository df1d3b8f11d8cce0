"""Hands to the drafts what they need: a master, an ear, tmux, admins, and a way to start a run."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import trio

from takopi.core.errors import Refused, TakopiError, Unreachable
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import IncomingMessage, Voice
from takopi.core.outgoing import Outgoing
from takopi.drafts.master import PromptMaster
from takopi.drafts.ports import Ports
from takopi.drafts.tmux import Tmux
from takopi.engines.claude.spec import ClaudeSettings
from takopi.kit.clock import now_ms
from takopi.kit.http import open_http
from takopi.oneshot.api import open_api
from takopi.oneshot.cli import Claude
from takopi.routing.ctx import format_ctx
from takopi.routing.directives import parse_directives
from takopi.runs.deliver import where
from takopi.runs.request import Requests
from takopi.runs.schedule import Schedule
from takopi.runs.workshop import Workshop, put
from takopi.store import ledger
from takopi.store.ledger import NewRun, Run
from takopi.telegram.transport import TelegramTransport
from takopi.voice.transcribe import Transcriber

ADMIN_S = 10.0
"""How long the chat's server may take to say who somebody is."""

ADMINS_KNOWN_S = 60.0
"""How long that is believed."""

DOWNLOAD_S = 60.0


class Admins:
    """Who may press the buttons of a draft: the admins of its chat, and those the config names."""

    def __init__(self, shop: Workshop, telegram: TelegramTransport | None) -> None:
        self._shop = shop
        self._telegram = telegram
        self._known: dict[tuple[int, int], tuple[bool, float]] = {}

    async def is_admin(self, scope: Scope, user_id: int) -> bool:
        """Whether this person may decide here; in a private chat, whoever it is with may."""
        telegram = self._telegram
        if scope.chat_id == user_id or user_id in self._shop.config().admin_user_ids:
            return True
        if telegram is None or scope.transport != telegram.name:
            # Whoever speaks over another transport is the owner of this machine.
            return True
        now = trio.current_time()
        known = self._known.get((scope.chat_id, user_id))
        if known is not None and known[1] > now:
            return known[0]
        try:
            with trio.fail_after(ADMIN_S):
                found = await telegram.is_chat_admin(scope.chat_id, user_id)
        except (trio.TooSlowError, TakopiError):
            raise Refused("Telegram did not say whether you are an admin: press again") from None
        self._known = {who: fact for who, fact in self._known.items() if fact[1] > now}
        self._known[scope.chat_id, user_id] = found, now + ADMINS_KNOWN_S
        return found


def is_spoken(message: IncomingMessage) -> bool:
    """Whether what the message says has to be heard first."""
    return message.voice is not None and not message.text.strip()


@dataclass(frozen=True, slots=True)
class Ear:
    """Writes voice notes down."""

    transcriber: Transcriber
    telegram: TelegramTransport | None

    async def hear(self, scope: Scope, voice: Voice) -> str:
        """What was said; an error says why it cannot be known."""
        if self.telegram is None or scope.transport != self.telegram.name:
            raise Refused("voice notes come by Telegram only", way_out="type it")
        self.transcriber.check(voice.duration_s)
        try:
            with trio.fail_after(DOWNLOAD_S):
                with await self.telegram.download(voice.file_id) as file:
                    recording = await trio.to_thread.run_sync(file.read)
            with trio.fail_after(self.transcriber.settings().timeout_s):
                return await self.transcriber.transcribe(recording)
        except trio.TooSlowError:
            raise Unreachable(
                "this voice note was not written down in time", maybe_applied=False
            ) from None

    async def read(self, message: IncomingMessage) -> IncomingMessage:
        """The message with what was said in it as its text; any other as it is."""
        if message.voice is None or not is_spoken(message):
            return message
        return replace(message, text=await self.hear(message.scope, message.voice))


@dataclass(frozen=True, slots=True)
class Parts:
    """What drafts and voice notes need besides the runs."""

    master: PromptMaster
    tmux: Tmux
    ear: Ear
    admins: Admins


@asynccontextmanager
async def open_parts(
    shop: Workshop,
    telegram: TelegramTransport | None,
    *,
    environ: Mapping[str, str],
    secrets: tuple[str, ...] = (),
) -> AsyncGenerator[Parts, None]:
    """The parts, for as long as the block lasts."""
    config, keeper = shop.config, shop.engines.keeper
    async with (
        open_http(max_connections=4) as http,
        open_api(config().oneshot, environ) as api,
    ):
        transcriber = Transcriber(lambda: config().voice, http, keeper, environ, secrets)
        yield Parts(
            master=PromptMaster(
                config=config,
                claude=lambda: _claude(shop),
                keeper=keeper,
                api=api,
                environ=environ,
                secrets=secrets,
            ),
            tmux=Tmux(keeper, environ, lambda: config().drafts.tmux_socket, secrets),
            ear=Ear(transcriber, telegram),
            admins=Admins(shop, telegram),
        )


def draft_ports(shop: Workshop, schedule: Schedule, requests: Requests, *, parts: Parts) -> Ports:
    """What `Drafts` is handed."""
    starter = _Starter(shop, schedule, requests)
    return Ports(
        db=shop.db,
        transport=shop.transport,
        put=_put,
        master=parts.master,
        tmux=parts.tmux,
        hear=parts.ear.hear,
        is_admin=parts.admins.is_admin,
        split=starter.split,
        place=starter.place,
        start=starter.start,
    )


@dataclass(frozen=True, slots=True)
class _Starter:
    shop: Workshop
    schedule: Schedule
    requests: Requests

    def split(self, scope: Scope, text: str) -> tuple[str, str]:
        """The directives that the text begins with, and the rest."""
        found = parse_directives(
            text,
            engines=[engine.id for engine in self.shop.engines],
            projects=self.shop.config().projects,
            bot_name=self.shop.transport(scope).bot_name,
        )
        return " ".join(found.words), found.prompt

    async def place(self, scope: Scope, words: str) -> str:
        """The ctx line of a run with such directives; empty without a project."""
        context = (await self.requests.resolve(_message(scope, words))).context
        return "" if context is None else format_ctx(context)

    async def start(
        self,
        scope: Scope,
        words: str,
        *,
        prompt: str,
        card: MessageRef | None,
        also: Callable[[sqlite3.Connection], bool],
    ) -> str | None:
        """Start a run with this prompt, together with what `also` does, or not at all."""
        resolved = await self.requests.resolve(_message(scope, words))
        new = NewRun(
            scope=scope,
            prompt=prompt,
            engine=resolved.engine,
            model=resolved.model,
            thread=resolved.thread,
            context=resolved.context,
            cwd=resolved.cwd_hint,
            prompt_ref=card,
        )

        def change(conn: sqlite3.Connection) -> Run | None:
            return ledger.add(conn, new, now_ms=now_ms()) if also(conn) else None

        run = await self.shop.db.write(change)
        if run is None:
            return None
        self.schedule.submit(
            run,
            waits_for=resolved.waits_for,
            session_cwd=resolved.session_cwd,
            notes=resolved.notes,
        )
        at = where(resolved.context, None)
        return f"Run {run.id}: {resolved.engine}{f' in {at}' if at else ''}"


def _put(
    conn: sqlite3.Connection, scope: Scope, message: Outgoing, *, key: str | None = None
) -> None:
    put(conn, scope, message, kind="notice", key=key)


def _message(scope: Scope, words: str) -> IncomingMessage:
    """A message that says these words and nothing else."""
    return IncomingMessage(
        scope.transport, scope.chat_id, 0, words, None, None, None, thread_id=scope.topic_id
    )


def _claude(shop: Workshop) -> Claude:
    settings = shop.config().engines.get("claude")
    if not isinstance(settings, ClaudeSettings):
        return Claude()
    return Claude(settings.command or "claude", settings.env, settings.use_api_billing)
