"""Shows a turn as its folder says it stands, and has it planned and carried out beside the chat.

A folder has one such work at a time. Whatever a crash leaves is found in the folder again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import structlog
import trio
from msgspec.structs import replace

from takopi.core.errors import Refused, StoreFailed, TakopiError
from takopi.core.outgoing import Attachment, Card, Outgoing
from takopi.kit.supervise import Backoff
from takopi.present.cards import refusal
from takopi.present.compose import plain
from takopi.store.reviews import ReviewId
from takopi.turns import journal
from takopi.turns.following import settle
from takopi.turns.grammar import Malformed, parse
from takopi.turns.journal import Past
from takopi.turns.kept import Draw, Kept, Open
from takopi.turns.layout import Turn, read_text
from takopi.turns.machine import Choice
from takopi.turns.plan import Plan
from takopi.turns.planning import Planner, turn_of
from takopi.turns.ports import Ports
from takopi.turns.preview import preview
from takopi.turns.review import Review, choice_of, opened
from takopi.turns.service import (
    At,
    Interrupted,
    Invalid,
    Proposal,
    check,
    digest_of,
    execute,
    pending_request,
    recover,
)
from takopi.turns.view import (
    Face,
    ask_card,
    done_card,
    executing_card,
    failed_card,
    in_chat,
    interrupted_card,
    invalid_card,
    is_long,
    planning_card,
    review_card,
    with_line,
)

STOPPED = "takopi was stopped before anything of it was carried out."
NO_PLAN = "Planning came to nothing."
BUSY = {"planning": "is being planned", "executing": "is being carried out"}

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.turns")


class TurnDesk:
    """What is open, and the work on it. The work lives in `nursery`, which is given to it."""

    def __init__(self, nursery: trio.Nursery, ports: Ports) -> None:
        self.kept = Kept(ports.db, ports.transport)
        self._nursery = nursery
        self._ports = ports
        self._locks: dict[Path, trio.Lock] = {}
        self._work: dict[Path, trio.Lock] = {}
        self._planning: dict[ReviewId, trio.CancelScope] = {}
        self._executing = 0
        self._idle = trio.Event()

    def lock(self, root: Path) -> trio.Lock:
        """One step at a time for each folder."""
        return self._locks.setdefault(root, trio.Lock())

    def _work_on(self, root: Path) -> trio.Lock:
        """One work at a time for each folder: what was cancelled ends before the next begins."""
        return self._work.setdefault(root, trio.Lock())

    def require_idle(self, root: Path) -> None:
        """`Refused` while a turn of this folder is planned or carried out."""
        at = self.kept.at(root)
        if at is not None and (doing := BUSY.get(at.review.stage)) is not None:
            raise Refused(
                f"turn {at.review.turn} of {at.review.session} {doing}",
                way_out="wait until that has ended: `/session status`",
            )

    async def check(self, at: Open) -> Proposal | Invalid | Interrupted:
        """What is to be done with the turn, as its folder says now."""
        turn = turn_of(at.root, at.review)
        return await trio.to_thread.run_sync(check, turn, self._ports.rules())

    async def look(self, at: Open, *, note: str = "") -> None:
        """Show the turn as it stands now, on a new card."""
        turn = turn_of(at.root, at.review)
        past = await trio.to_thread.run_sync(journal.read_past, turn)
        if turn.has("report.md") and past is not None:
            await self._finish(at, past)
            return
        # Without a journal nothing of it was carried out: somebody skipped it, and went on.
        turn = await trio.to_thread.run_sync(_newest, turn)
        base = replace(at.review, turn=turn.id, note=note)
        if turn.has("plan.md"):
            found = await trio.to_thread.run_sync(check, turn, self._ports.rules())
            review, draw = stand(base, found)
        else:
            review, draw = replace(base, stage="done", shown="summary", digest=""), ask_card
        at = await self.kept.show(at, review, draw=draw)
        if review.stage == "planning":
            self.plan(at)

    async def show_anew(self, at: Open) -> None:
        """Its card is gone, or stands where nobody looks any more: show another."""
        if await self.kept.message_id(at) is None:
            # It was not sent yet, and will be.
            return
        # What is known of the last card is left behind: its number means nothing elsewhere.
        at = await self.kept.save(at, replace(at.review, card=at.review.card + 1, waits=None))
        match at.review.stage:
            case "executing":
                pass
            case "planning":
                await self.kept.show(at, at.review, draw=planning_card)
            case "failed":
                await self.kept.show(at, at.review, draw=lambda face: failed_card(face, NO_PLAN))
            case _:
                await self.look(at)

    async def card(self, at: Open, plan: Plan | None) -> Card:
        """The card as it is now."""
        face, review = self.kept.face(at), at.review
        if review.stage == "review" and plan is not None:
            shown = None
            if review.shown == "item":
                see = partial(preview, at.root, plan, choice_of(review, plan), item=review.item)
                shown = await trio.to_thread.run_sync(see)
            return review_card(face, plan, preview=shown)
        turn = turn_of(at.root, review)
        past = await trio.to_thread.run_sync(journal.read_past, turn)
        if past is None:
            return ask_card(face)
        if review.stage == "interrupted":
            return interrupted_card(face, past)
        return done_card(face, past, await trio.to_thread.run_sync(read_text, _report(at)))

    def plan(self, at: Open, *, is_recovered: bool = False) -> None:
        """Have the turn planned."""
        if self._nursery.cancel_scope.cancel_called:
            # takopi is stopping, and a chat has moved: the next start goes on.
            return
        self._planning[at.id] = trio.CancelScope()
        self._nursery.start_soon(partial(self._plan, at, is_recovered=is_recovered))

    async def plan_again(self, at: Open) -> None:
        """Try once more what came to nothing."""
        turn = turn_of(at.root, at.review)
        pending = await trio.to_thread.run_sync(pending_request, turn.next())
        message = pending or at.review.message
        task = "begin" if turn.session.folder.is_dir() else "new"
        review = replace(at.review, stage="planning", task=task, message=message)
        self.plan(await self.kept.show(at, review, draw=planning_card))

    def stop_planning(self, at: Open) -> None:
        """Nobody wants the plan any more."""
        if scope := self._planning.get(at.id):
            scope.cancel()

    async def execute(self, at: Open, proposal: Proposal, choice: Choice) -> None:
        """Have what was approved carried out: from here on it cannot be approved again."""
        review = replace(
            at.review,
            stage="executing",
            memos=tuple(sorted(choice.memos)),
            actions=tuple(sorted(choice.actions)),
            note="",
        )
        at = await self.kept.save(at, review)
        run = partial(execute, proposal, self._ports.bench(at.root), choice=choice)
        self._nursery.start_soon(self._execute, at, run, proposal.plan)

    async def recover(self, at: Open, interrupted: Interrupted, *, go_on: bool) -> None:
        """Bring an interrupted turn to its report."""
        at = await self.kept.save(at, replace(at.review, stage="executing"))
        run = partial(recover, interrupted, self._ports.bench(at.root), go_on=go_on)
        self._nursery.start_soon(self._execute, at, run, interrupted.past.plan)

    async def drain(self) -> None:
        """Return when nothing is carried out; the caller sets the deadline."""
        while self._executing:
            self._idle = trio.Event()
            await self._idle.wait()

    async def _plan(self, at: Open, *, is_recovered: bool) -> None:
        ports, scope = self._ports, self._planning[at.id]
        planner = Planner(
            ask=ports.ask,
            rules=ports.rules(),
            environ=ports.environ,
            keep=partial(self._keep, at),
            tell=partial(self._tell_invalid, at),
        )
        found: Proposal | TakopiError | None = None
        with scope:
            try:
                async with self._work_on(at.root):
                    found = await planner.plan(at.root, at.review, is_recovered=is_recovered)
            except (TakopiError, OSError) as error:
                found = in_chat(_as_told(error))
            except Exception as error:  # one plan must not end the runs beside it
                log.exception("plan.failed")
                found = TakopiError(f"takopi has a bug: {type(error).__name__}. Its log says more.")
        del self._planning[at.id]
        if found is not None:
            await _insist(partial(self._planned, at, found))

    async def _planned(self, at: Open, found: Proposal | TakopiError) -> None:
        async with self.lock(at.root):
            current = self.kept.find(at.id)
            if current is None or current.review.stage != "planning":
                return
            if isinstance(found, Proposal):
                review, draw = stand(current.review, found)
                await self.kept.show(current, review, draw=draw)
                return
            why = f"{found.what}. {found.way_out}".rstrip(" .") + "."
            failed = replace(current.review, stage="failed")
            await self.kept.show(current, failed, draw=lambda face: failed_card(face, why))

    async def _keep(self, at: Open, review: Review) -> None:
        if (current := self.kept.find(at.id)) is not None:
            card = current.review.card
            await self.kept.save(current, replace(review, card=card, step=current.review.step))

    async def _tell_invalid(
        self, at: Open, review: Review, *, invalid: Invalid, again: bool
    ) -> None:
        scope = (self.kept.find(at.id) or at).scope
        at = Open(at.id, scope, at.root, review)
        card = invalid_card(self.kept.face(at), invalid.errors, again=again)
        key = f"pv:{at.id}:invalid:{review.session}/{review.turn}"
        await self.kept.say(at.scope, Outgoing(card), key=key)

    async def _execute(self, at: Open, run: Callable[..., Awaitable[object]], plan: Plan) -> None:
        self._executing += 1
        try:
            failure = await self._try(at, run, plan)
            await _insist(partial(self._executed, at, failure))
        finally:
            self._executing -= 1
            self._idle.set()

    async def _try(
        self, at: Open, run: Callable[..., Awaitable[object]], plan: Plan
    ) -> TakopiError | None:
        try:
            async with self._work_on(at.root):
                await run(at=await self._follow(at, plan))
        except (TakopiError, OSError) as error:
            return in_chat(_as_told(error))
        except Exception as error:  # one turn must not end the runs beside it
            log.exception("turn.failed")
            return TakopiError(f"takopi has a bug: {type(error).__name__}. Its log says more.")
        return None

    async def _follow(self, at: Open, plan: Plan) -> At:
        """Lets the card say which action has begun."""
        edit = await self.kept.editor(at)
        face = self.kept.face(at)
        edit(executing_card(face, plan))

        def follow(step: str) -> None:
            # The last steps are taken in another thread, where a transport is not to be touched.
            if step.startswith("begun "):
                edit(executing_card(face, plan, index=int(step.removeprefix("begun "))))

        return follow

    async def _executed(self, at: Open, failure: TakopiError | None) -> None:
        async with self.lock(at.root):
            current = self.kept.find(at.id)
            if current is None or current.review.stage != "executing":
                return
            if failure is not None:
                await self.kept.say(current.scope, Outgoing(refusal(failure)))
            try:
                await self.look(current)
            except (Refused, OSError) as error:
                await self.kept.end(current, said=refusal(in_chat(_as_told(error))))

    async def _finish(self, at: Open, past: Past) -> None:
        """Tell of a turn that is reported, and offer the next."""
        text = await trio.to_thread.run_sync(read_text, _report(at))
        review = replace(at.review, stage="done", shown="summary", digest="", waits=None)
        before: list[Outgoing] = []
        if is_long(text):
            file = Attachment("report.md", text.encode("utf-8", "replace"))
            before.append(Outgoing(Card(plain("The whole report.")), attachment=file))

        def draw(face: Face) -> Card:
            return done_card(face, past, text)

        ended = executing_card(self.kept.face(at), past.plan)
        await self.kept.edit(at, with_line(ended, "Carried out: the report is below."))
        await self.kept.show(at, review, draw=draw, before=before)


def stand(review: Review, found: Proposal | Invalid | Interrupted) -> tuple[Review, Draw]:
    """How a review goes on with what was found, and its card."""
    match found:
        case Proposal():
            plan = found.plan
            shown = opened(review, plan, found.digest)
            return shown, lambda face: review_card(face, plan)
        case Interrupted():
            past = found.past
            halted = replace(
                review, stage="interrupted", digest="", words={}, waits=None, user_id=None
            )
            return halted, lambda face: interrupted_card(face, past)
        case Invalid():
            message = found.turn.meta().user_request
            fix = replace(review, stage="planning", task="fix", message=message, digest="")
            return fix, planning_card


async def _insist(step: Callable[[], Awaitable[None]]) -> None:
    """What has happened is written down as soon as the disk takes it."""
    backoff = Backoff()
    while True:
        try:
            await step()
            return
        except StoreFailed as error:
            log.warning("turn.not_written", why=error.what)
        except Exception:
            log.exception("turn.not_shown")
            return
        await trio.sleep(backoff.pause_s())


def shown_plan(at: Open) -> Proposal | None:
    """The plan that is shown, where it is still the one; whether it passes its checks is open."""
    turn = turn_of(at.root, at.review)
    text = read_text(turn.path("plan.md"))
    plan = parse(text)
    is_over = turn.has("report.md") or journal.read_past(turn) is not None
    if is_over or isinstance(plan, Malformed) or digest_of(text) != at.review.digest:
        return None
    return Proposal(turn, plan, at.review.digest)


def _newest(turn: Turn) -> Turn:
    """The turn itself, unless it is reported; `Refused` if it is gone."""
    if not turn.folder.is_dir():
        raise Refused(
            f"turn {turn.id} of {turn.session.name} is no longer there",
            way_out="begin another session: `/session new <name>`",
        )
    return settle(turn.session.latest()) if turn.has("report.md") else turn


def _report(at: Open) -> Path:
    return turn_of(at.root, at.review).path("report.md")


def _as_told(error: TakopiError | OSError) -> TakopiError:
    if isinstance(error, TakopiError):
        return error
    return TakopiError(f"{error.filename or 'a file'}: {error.strerror or error}")
