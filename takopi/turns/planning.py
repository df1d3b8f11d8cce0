"""Has a turn planned until its plan passes its checks, and can be begun again wherever it stopped.

How far it has come is kept after each step, before the next begins. What a model was asked and
never answered is asked again after a crash; nothing else is done twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import trio
from msgspec.structs import replace

from takopi.core.errors import Refused
from takopi.turns import journal
from takopi.turns.following import settle
from takopi.turns.layout import FOLDER, Session, Turn
from takopi.turns.replan import replans_before
from takopi.turns.review import Review
from takopi.turns.service import (
    Ask,
    Interrupted,
    Invalid,
    Proposal,
    Rules,
    check,
    create_session,
    pending_request,
    plan_turn,
    replan,
    skip,
)


class Tell(Protocol):
    """Is told of a plan that failed its checks, and whether another is made."""

    async def __call__(self, review: Review, *, invalid: Invalid, again: bool) -> None:
        """Tell somebody."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """What a plan is made with; `keep` has a review kept."""

    ask: Ask
    rules: Rules
    environ: Mapping[str, str]
    keep: Callable[[Review], Awaitable[None]]
    tell: Tell

    async def plan(self, root: Path, review: Review, *, is_recovered: bool) -> Proposal:
        """The plan, once there is one that can be decided on; an error says why there is none."""
        message: str | None = review.message
        if review.task in {"plan", "fix"}:
            find = partial(self._find, root, review, is_recovered=is_recovered)
            turn, message = await trio.to_thread.run_sync(find)
        else:
            turn = await trio.to_thread.run_sync(self._prepare, root, review)
        if message is None:
            review = replace(review, task="fix")
        else:
            review = replace(review, task="plan", message=message)
        review = replace(review, session=turn.session.name, turn=turn.id)
        await self.keep(review)
        if message is not None:
            await plan_turn(turn, message, ask=self.ask, rules=self.rules, environ=self.environ)
        return await self._until_fit(turn, review)

    async def _until_fit(self, turn: Turn, review: Review) -> Proposal:
        while True:
            found = await trio.to_thread.run_sync(check, turn, self.rules)
            match found:
                case Proposal():
                    return found
                case Interrupted():
                    raise Refused(
                        f"turn {turn.id} was interrupted", way_out="look at it: `/session execute`"
                    )
                case Invalid():
                    again = replans_before(turn) < self.rules.max_replans
                    await self.tell(review, invalid=found, again=again)
                    following = await replan(
                        found, ask=self.ask, rules=self.rules, environ=self.environ
                    )
            if following is None:
                raise self._gave_up()
            turn = following
            review = replace(review, task="fix", turn=turn.id)
            await self.keep(review)

    def _find(self, root: Path, review: Review, *, is_recovered: bool) -> tuple[Turn, str | None]:
        """The turn that planning had come to, and what it is to be asked; None if it was answered.

        A turn that is reported since has failed its checks: the next one corrects it.
        """
        before = turn_of(root, review)
        turn = settle(before)
        if turn == before:
            is_answered = review.task == "fix" or (
                is_recovered and turn.meta().user_request == review.message
            )
            return turn, None if is_answered and turn.has("plan.md") else review.message
        if turn.has("plan.md"):
            return turn, None
        if pending := pending_request(turn):
            return turn, pending
        if journal.read_past(before) is not None:
            raise Refused(f"turn {before.id} is done", way_out="takopi session resume goes on")
        raise self._gave_up()

    def _prepare(self, root: Path, review: Review) -> Turn:
        """Bring the session to the turn that is to be planned."""
        turn = turn_of(root, review)
        if review.task == "new" and not turn.session.folder.exists():
            turn = create_session(root, review.session.partition("-")[2]).latest()
        if review.task == "skip" and not turn.has("report.md"):
            found = check(turn, self.rules)
            if isinstance(found, Proposal):
                return skip(found, message=review.message)
        if review.task == "begin":
            # Somebody may have gone on in a terminal since.
            turn = turn.session.latest()
        return settle(turn)

    def _gave_up(self) -> Refused:
        count = self.rules.max_replans + 1
        what = (
            f"{count} plans in a row failed their checks"
            if count > 1
            else "the plan failed its checks"
        )
        return Refused(what, way_out="say it differently: `/session plan …`")


def turn_of(root: Path, review: Review) -> Turn:
    """The turn that a review is about."""
    return Session(root / FOLDER / review.session).turn(review.turn)
