"""Calls to the model for the next questions: each interview has at most one on its way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import structlog
import trio

from takopi.core.errors import TakopiError, Unfit
from takopi.interview.host import Host
from takopi.interview.machine import Batch
from takopi.interview.questions import next_batch
from takopi.interview.session import Session
from takopi.kit.supervise import Backoff
from takopi.oneshot.port import Oneshot, answer_within

Take: TypeAlias = Callable[[Session, Batch | TakopiError], Awaitable[None]]
"""What is done with the questions, or with the reason why there are none."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.interview")


class Calls:
    """The calls that are on their way, in `nursery`. Each ends with `take`."""

    def __init__(self, nursery: trio.Nursery, oneshot: Oneshot, *, host: Host, take: Take) -> None:
        self._nursery = nursery
        self._oneshot = oneshot
        self._host = host
        self._take = take
        self._scopes: dict[str, trio.CancelScope] = {}

    def begin(self, session: Session) -> None:
        """Ask for the next questions; a call that is on its way is given up."""
        self.give_up(session)
        scope = self._scopes[session.session_id] = trio.CancelScope()
        self._nursery.start_soon(self._ask, session, scope)

    def give_up(self, session: Session) -> None:
        """Nobody wants the answer any more."""
        if scope := self._scopes.pop(session.session_id, None):
            scope.cancel()

    def settle(self, session: Session) -> None:
        """The answer is being taken: from here on nobody may cut that short."""
        self._scopes.pop(session.session_id, None)

    async def _ask(self, session: Session, scope: trio.CancelScope) -> None:
        with scope:
            try:
                await self._insist(session, await self._answer(session))
            except Exception:  # one interview must not end the runs beside it
                log.exception("interview.failed")

    async def _insist(self, session: Session, answer: Batch | TakopiError) -> None:
        """Nobody asks for the answer again: it is taken as soon as it can be kept."""
        backoff = Backoff(cap_s=5.0)
        while True:
            try:
                await self._take(session, answer)
                return
            except Unfit as error:
                log.warning("interview.not_kept", why=error.what)
            await trio.sleep(backoff.pause_s())

    async def _answer(self, session: Session) -> Batch | TakopiError:
        config = self._host.config()
        try:
            with answer_within(config.oneshot.timeout_s):
                return await next_batch(
                    self._oneshot, session, max_rounds=config.interview.max_rounds
                )
        except TakopiError as error:
            return error
