"""Sessions in a chat: what a command, a press or a text changes is kept before anybody sees it.

A decision counts once, for the plan that was shown, and from an admin of the chat. Planning and
carrying out go on beside the chat.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import trio
from msgspec.structs import replace

from takopi.core.errors import Refused, TakopiError
from takopi.core.ids import MessageRef, Scope
from takopi.core.messages import IncomingMessage, Press
from takopi.core.outgoing import Card, Outgoing
from takopi.engines.wording import visible
from takopi.present.cards import notice, refusal
from takopi.routing.answers import Take, may_answer
from takopi.store.reviews import ReviewId
from takopi.turns import journal
from takopi.turns.buttons import ReviewPress
from takopi.turns.desk import BUSY, STOPPED, TurnDesk, shown_plan, stand
from takopi.turns.kept import Open
from takopi.turns.layout import Turn, find_turn, read_text
from takopi.turns.places import begun, free_folder, latest
from takopi.turns.planning import turn_of
from takopi.turns.ports import Place, Ports
from takopi.turns.preview import preview
from takopi.turns.review import (
    MOVED_ON,
    TOO_LATE,
    Review,
    apply,
    approval,
    choice_of,
    typed,
)
from takopi.turns.service import (
    Interrupted,
    Proposal,
    check,
    create_session,
    pending_request,
)
from takopi.turns.view import (
    ask_card,
    file_message,
    in_chat,
    planning_card,
    summary,
    whole,
    with_line,
)

NOT_ADMIN = "Only admins of this chat may do that."
ELSEWHERE = "This button belongs to another chat."
CHANGED = "The plan has changed since it was shown."
UNFIT = "The plan no longer fits the project: another is made."
SENT = "It was sent before: look above."
QUIT = "Quit: nothing was carried out."
LEFT = "It stays as it is."
STOPPED_PLANNING = (
    "Planning was cancelled. What was asked for stays in the session: `/session resume` takes it up"
    " again, `/session plan <text>` asks for something else."
)


@dataclass(frozen=True, slots=True)
class _Pressed:
    """A press that is being handled, and what it is about."""

    at: Open
    press: Press
    what: ReviewPress
    found: Proposal | None


class TurnChat:
    """All sessions that people talk about. Their work lives in `nursery`."""

    def __init__(self, nursery: trio.Nursery, ports: Ports) -> None:
        self._ports = ports
        self._desk = TurnDesk(nursery, ports)
        self._kept = self._desk.kept

    async def recover(self) -> None:
        """After a start: go on with planning, and show what was being carried out."""
        await self._kept.load()
        for at in self._kept:
            if self._ports.transport(at.scope) is None:
                continue
            async with self._desk.lock(at.root):
                try:
                    if at.review.stage == "planning":
                        self._desk.plan(at, is_recovered=True)
                    elif at.review.stage == "executing":
                        await self._desk.look(at, note=STOPPED)
                except (Refused, OSError) as error:
                    await self._end_with(at, error)

    async def drain(self) -> None:
        """Return when nothing is carried out; the caller sets the deadline."""
        await self._desk.drain()

    async def follow(self, old: Scope, new: Scope) -> None:
        """A chat has another number, or a topic is gone: what is open there goes on in `new`."""
        for review_id in await self._kept.follow(old, new):
            await self._show_anew(review_id)

    async def lost(self, ref: MessageRef) -> None:
        """Somebody has deleted a message: where it was a card, there is another."""
        for at in self._kept:
            here = at.scope.transport == ref.transport and at.scope.chat_id == ref.chat_id
            is_lost = here and await self._kept.message_id(at) == ref.message_id
            if is_lost and at.review.stage not in BUSY:
                await self._show_anew(at.id)

    async def _show_anew(self, review_id: ReviewId) -> None:
        at = self._kept.find(review_id)
        if at is None or self._ports.transport(at.scope) is None:
            return
        async with self._desk.lock(at.root):
            at = self._kept.find(review_id)
            if at is None:
                return
            try:
                await self._desk.show_anew(at)
            except (Refused, OSError) as error:
                await self._end_with(at, error)

    async def new(self, place: Place, name: str) -> str:
        """Begin a session; returns its name."""
        async with self._desk.lock(place.root):
            self._desk.require_idle(place.root)
            created = await trio.to_thread.run_sync(create_session, place.root, name)
            return created.name

    async def plan(self, place: Place, message: str) -> None:
        """Have the newest turn planned."""
        async with self._desk.lock(place.root):
            self._desk.require_idle(place.root)
            turn = await trio.to_thread.run_sync(latest, place.root)
            match await trio.to_thread.run_sync(begun, turn):
                case "executing":
                    raise Refused(
                        f"turn {turn.id} is being carried out",
                        way_out="wait until that has ended: `/session status`",
                    )
                case "interrupted":
                    raise Refused(
                        f"turn {turn.id} was interrupted while it was carried out",
                        way_out="`/session execute` shows how far it came",
                    )
                case None:
                    pass
            await self._plan(place, turn, message)

    async def begin(
        self, place: Place, name: str, message: str, *, also: Callable[[sqlite3.Connection], bool]
    ) -> None:
        """Begin a session and have its first turn planned, together with what `also` does.

        A name that is taken gets a number.
        """
        async with self._desk.lock(place.root):
            self._desk.require_idle(place.root)
            folder = await trio.to_thread.run_sync(free_folder, place.root, name)
            review = Review(
                stage="planning",
                session=folder.name,
                turn="01",
                place=place.words,
                task="new",
                message=message,
            )
            at = await self._kept.begin(
                place.scope, place.root, review, draw=planning_card, also=also
            )
            if at is not None:
                self._desk.plan(at)

    async def execute(self, place: Place) -> None:
        """Show the plan that waits, or how far an interrupted turn came."""
        async with self._desk.lock(place.root):
            self._desk.require_idle(place.root)
            await self._execute(place, await trio.to_thread.run_sync(find_turn, place.root))

    async def resume(self, place: Place, *, user_id: int) -> None:
        """Go on: with a plan that waits, with what was asked for, or ask what comes next."""
        async with self._desk.lock(place.root):
            self._desk.require_idle(place.root)
            turn = await trio.to_thread.run_sync(latest, place.root)
            if turn.has("plan.md"):
                await self._execute(place, turn)
            elif message := await trio.to_thread.run_sync(pending_request, turn):
                await self._plan(place, turn, message)
            else:
                review = replace(_review(place, turn), stage="done", waits="next", user_id=user_id)
                await self._kept.begin(place.scope, place.root, review, draw=ask_card)

    async def status(self, place: Place) -> str:
        """Where the newest session stands, in a sentence."""
        turn = await trio.to_thread.run_sync(latest, place.root)
        state = "has a plan that waits" if turn.has("plan.md") else "waits for a plan"
        if (stage := await trio.to_thread.run_sync(begun, turn)) is not None:
            state = BUSY.get(stage, "was interrupted while it was carried out")
        at = self._kept.at(place.root)
        if at is not None and turn_of(at.root, at.review) == turn:
            state = BUSY.get(at.review.stage, state)
        return f"{turn.session.name}: turn {turn.id} ({turn.meta().agent}) {state}"

    async def press(self, press: Press, what: ReviewPress) -> None:
        """Do what was pressed, where an admin pressed it and it still means what it says."""
        transport = self._ports.transport(press.scope)
        assert transport is not None  # ruff: ignore[assert] the press came through it
        if not await self._ports.is_admin(press.scope, press.sender_id):
            transport.acknowledge(press, NOT_ADMIN, alert=True)
            return
        at = self._kept.find(what.review)
        if at is not None and at.scope.chat != press.scope.chat:
            transport.acknowledge(press, ELSEWHERE)
            return
        if at is not None:
            async with self._desk.lock(at.root):
                at = self._kept.find(what.review)
                if at is not None and await self._kept.is_card(at, press.ref):
                    await self._press(at, press, what)
                    return
        transport.acknowledge(press, TOO_LATE)
        transport.clear_buttons(press.ref)

    @asynccontextmanager
    async def taking(self, message: IncomingMessage) -> AsyncGenerator[Take | None]:
        """What takes a text that a card asks this person for; no card changes meanwhile.

        None where no card does, and for a reply to a run.
        """
        wanted = partial(self._kept.waiting, message.scope, message.sender_id or message.chat_id)
        if wanted() is not None and await may_answer(self._ports.db, message):
            while (at := wanted()) is not None:
                async with self._desk.lock(at.root):
                    if (now := wanted()) is not None and now.root == at.root:
                        yield partial(self._take, now, message)
                        return
        yield None

    async def _take(self, at: Open, message: IncomingMessage) -> None:
        found = None
        if at.review.stage == "review":
            found = await trio.to_thread.run_sync(shown_plan, at)
            if found is None:
                await self._say(at, CHANGED, message)
                await self._look_again(at)
                return
        await self._typed(at, message, found)

    async def _typed(self, at: Open, message: IncomingMessage, found: Proposal | None) -> None:
        waits = at.review.waits
        step = typed(at.review, message.text, plan=None if found is None else found.plan)
        if step.note:
            await self._say(at, step.note, message)
        elif waits == "edit":
            at = await self._kept.save(at, step.review)
            plan = None if found is None else found.plan
            await self._kept.edit(at, await self._desk.card(at, plan))
        else:
            task = "skip" if waits == "skip" else "begin"
            review = replace(step.review, stage="planning", task=task, digest="", note="")
            self._desk.plan(await self._kept.show(at, review, draw=planning_card))

    async def _press(self, at: Open, press: Press, what: ReviewPress) -> None:
        found = None
        if at.review.stage == "review" and what.what != "quit":
            found = await trio.to_thread.run_sync(shown_plan, at)
            if found is None:
                await self._look_again(at)
                self._answer(press, CHANGED, alert=True)
                return
        plan = None if found is None else found.plan
        step = apply(at.review, what, plan=plan, user_id=press.sender_id)
        pressed = _Pressed(at, press, what, found)
        match step.effect:
            case "plan_file" | "item_file":
                note = await self._send_file(pressed, step.review)
                self._answer(press, note)
                return
            case "show":
                at = await self._kept.save(at, step.review)
                await self._redraw(at, press, await self._desk.card(at, plan))
            case "execute" if found is not None:
                if not isinstance(await self._desk.check(at), Proposal):
                    await self._look_again(at)
                    self._answer(press, UNFIT, alert=True)
                    return
                choice = approval(at.review, found.plan, what.what)
                await self._desk.execute(at, found, choice)
            case "fail" | "goon":
                await self._go_on(at, go_on=step.effect == "goon")
            case "retry":
                await self._desk.plan_again(at)
            case "quit":
                await self._quit(at, press)
            case "stop":
                self._desk.stop_planning(at)
                await self._kept.end(at, said=notice(STOPPED_PLANNING))
            case _:
                pass
        self._answer(press, step.note, alert=step.note == MOVED_ON)

    async def _go_on(self, at: Open, *, go_on: bool) -> None:
        turn = turn_of(at.root, at.review)
        past = await trio.to_thread.run_sync(journal.read_past, turn)
        if past is None or turn.has("report.md"):
            await self._look_again(at)
        else:
            await self._desk.recover(at, Interrupted(turn, past), go_on=go_on)

    async def _look_again(self, at: Open) -> None:
        """Show what is there instead of what was shown; where nothing is, it is over."""
        review = replace(at.review, waits=None, user_id=None)
        try:
            await self._desk.look(Open(at.id, at.scope, at.root, review))
        except Refused as error:
            await self._end_with(at, error)

    async def _end_with(self, at: Open, error: Refused | OSError) -> None:
        what = error if isinstance(error, TakopiError) else TakopiError(str(error))
        await self._kept.end(at, said=refusal(in_chat(what)))

    async def _quit(self, at: Open, press: Press) -> None:
        found = (
            await trio.to_thread.run_sync(shown_plan, at) if at.review.stage == "review" else None
        )
        await self._kept.end(at)
        where = self._kept.face(at).where
        if found is None:
            await self._redraw(at, press, with_line(Card(where), LEFT))
        else:
            await self._redraw(at, press, with_line(Card(summary(found.plan)), QUIT))

    async def _send_file(self, pressed: _Pressed, review: Review) -> str:
        """Send the whole plan, or the whole of one item, below the card; each once."""
        at, found = pressed.at, pressed.found
        if found is None:
            return TOO_LATE
        if pressed.what.what == "review":
            path = found.turn.path("plan.md")
            text = await trio.to_thread.run_sync(lambda: visible(read_text(path)))
            key, name, language = f"pv:{at.id}:plan:{found.digest[:16]}", "plan.md", "markdown"
        else:
            choice = choice_of(review, found.plan)
            shown = await trio.to_thread.run_sync(
                lambda: preview(at.root, found.plan, choice, item=review.item)
            )
            text, name, language = whole(shown), shown.name, shown.language
            key = f"pv:{at.id}:item:{review.item}:{review.step}"
        message = file_message(text, name, language, reply_to=pressed.press.message_id)
        return "" if await self._kept.say(at.scope, message, key=key) else SENT

    async def _execute(self, place: Place, turn: Turn) -> None:
        found = await trio.to_thread.run_sync(check, turn, self._ports.rules())
        review, draw = stand(self._known(place, turn), found)
        at = await self._kept.begin(place.scope, place.root, review, draw=draw)
        if at is not None and review.stage == "planning":
            self._desk.plan(at)

    async def _plan(self, place: Place, turn: Turn, message: str) -> None:
        review = replace(_review(place, turn), stage="planning", task="begin", message=message)
        at = await self._kept.begin(place.scope, place.root, review, draw=planning_card)
        if at is not None:
            self._desk.plan(at)

    def _known(self, place: Place, turn: Turn) -> Review:
        """What was chosen of this turn before, on another card of it."""
        at = self._kept.at(place.root)
        if at is None or turn_of(at.root, at.review) != turn:
            return _review(place, turn)
        return replace(at.review, place=place.words, note="")

    async def _redraw(self, at: Open, press: Press, card: Card) -> None:
        if transport := self._ports.transport(at.scope):
            transport.edit(press.ref, card)

    async def _say(self, at: Open, text: str, message: IncomingMessage) -> None:
        await self._kept.say(at.scope, Outgoing(notice(text), reply_to=message.message_id))

    def _answer(self, press: Press, text: str = "", *, alert: bool = False) -> None:
        if transport := self._ports.transport(press.scope):
            transport.acknowledge(press, text, alert=alert)


def _review(place: Place, turn: Turn) -> Review:
    return Review(stage="review", session=turn.session.name, turn=turn.id, place=place.words)
