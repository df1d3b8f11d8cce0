"""Asks as cards: each is decided once, by a press or a typed reply, and then says how."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec
import structlog
import trio

from takopi.core.errors import Refused, TakopiError
from takopi.core.events import Answer, Ask
from takopi.core.ids import MessageRef, RunId, Scope
from takopi.core.messages import IncomingMessage, Press
from takopi.core.outgoing import Button, Card, Outgoing
from takopi.kit.clock import now_ms
from takopi.present.cards import ask_card, decided
from takopi.present.wording import one_line
from takopi.runs.buttons import ASK, AskPress
from takopi.runs.live import Live
from takopi.runs.workshop import Workshop, put
from takopi.store import grants, outbox, threads

CLOSE_S = 3.0
LABEL_CHARS = 60
VERDICTS = {
    "allow": (Answer("allow"), "allowed once"),
    "thread": (Answer("allow_thread"), "allowed for this thread"),
    "deny": (Answer("deny"), "denied"),
}
TOO_LATE = "This was decided already."
ELSEWHERE = "This button belongs to another chat."

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.runs")


@dataclass(slots=True, eq=False)
class OpenAsk:
    """An ask that waits for a person, and how far they have come with it."""

    ask: Ask
    live: Live
    number: int
    card: Card = field(init=False)
    question: int = 0
    selected: list[str] = field(default_factory=list[str])
    replies: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    wants_reason: bool = False
    answer: Answer | None = None
    answered: trio.Event = field(default_factory=trio.Event)

    @property
    def key(self) -> str:
        """Under what the card with the buttons is kept in the outbox."""
        return f"ask:{self.live.id}:{self.number}"


class Asks:
    """All asks of this process that nobody has decided yet."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop
        self._open: dict[tuple[int, int], OpenAsk] = {}
        self._numbers: dict[RunId, int] = {}

    def port(self, live: Live) -> _Port:
        """Where the engine of this run puts its questions."""
        return _Port(self, live)

    def forget(self, run: RunId) -> None:
        """The run has ended, and asks nothing more."""
        self._numbers.pop(run, None)

    async def ask(self, live: Live, ask: Ask) -> Answer:
        """Show the ask and wait for the decision; a cancel closes the card."""
        if await self._is_granted(live, ask):
            return Answer("allow_thread")
        number = self._numbers[live.id] = self._numbers.get(live.id, 0) + 1
        opened = OpenAsk(ask, live, number)
        began = trio.current_time()
        live.asking += 1
        live.turn("waiting for you")
        self._open[live.id, number] = opened
        try:
            await self._show(opened)
            await opened.answered.wait()
        finally:
            del self._open[live.id, number]
            live.asking -= 1
            live.heard_at = trio.current_time()
            if live.asking == 0 and live.stage == "waiting for you":
                live.turn("working")
            with trio.move_on_after(CLOSE_S, shield=True):
                late = trio.current_time() - began >= self._shop.config().limits.ask_s
                await self._close(opened, "denied: nobody answered" if late else "no longer needed")
        assert opened.answer is not None  # ruff: ignore[assert] `answered` is set with it
        if opened.answer.verdict == "allow_thread":
            await self._remember_grant(live, ask)
        return opened.answer

    async def _is_granted(self, live: Live, ask: Ask) -> bool:
        thread = live.thread
        if not ask.grant or thread is None:
            return False
        return await self._shop.db.read(lambda conn: grants.has(conn, thread, ask.grant))

    async def _remember_grant(self, live: Live, ask: Ask) -> None:
        """The thread outlives this run, and the permission with it."""
        thread = live.thread
        if not ask.grant or thread is None:
            return
        try:
            await self._shop.db.write(lambda conn: grants.add(conn, thread, ask.grant))
        except TakopiError as error:
            log.warning("grant.not_remembered", why=error.what)

    async def press(self, press: Press, what: AskPress) -> None:
        """A button of an ask was pressed."""
        transport = self._shop.transport(press.scope)
        opened = self._open.get((what.run, what.ask))
        if opened is not None and opened.live.run.scope.chat != press.scope.chat:
            transport.acknowledge(press, ELSEWHERE)
            return
        if opened is None or opened.answered.is_set() or what.question != opened.question:
            transport.acknowledge(press, TOO_LATE)
            if opened is None:
                await self._mark_expired(press, what)
            return
        transport.acknowledge(press)
        if opened.ask.kind == "question":
            self._choose(opened, what.what, press)
        elif what.what == "reason":
            opened.wants_reason = True
            how = "Reply to this message with what should change."
            if opened.ask.plan is None:
                how = "Reply to this message with the reason."
            self._redraw(opened, press.ref, notes=(how,))
        elif what.what in VERDICTS:
            answer, words = VERDICTS[what.what]
            if opened.ask.plan is not None and what.what == "allow":
                words = "approved"
            self._decide(opened, answer, words + _by(press.scope, press.sender_id), press.ref)

    async def find(self, message: IncomingMessage) -> OpenAsk | None:
        """The open ask that a message answers."""
        ref = message.reply_ref
        if ref is None or not self._open or not message.text.strip():
            return None
        run = await self._shop.db.read(lambda conn: threads.run_of(conn, ref))
        if run is None:
            await self._shop.settle(message.scope.chat)
            run = await self._shop.db.read(lambda conn: threads.run_of(conn, ref))
        if run is None:
            return None
        key = await self._shop.db.read(
            lambda conn: outbox.key_of(conn, run, message_id=ref.message_id)
        )
        opened = next((each for each in self._open.values() if each.key == key), None)
        return None if opened is None or opened.answered.is_set() else opened

    async def typed(self, opened: OpenAsk, message: IncomingMessage) -> None:
        """Decide an ask by what was typed in reply to it."""
        ref = message.reply_ref
        is_open = self._open.get((opened.live.id, opened.number)) is opened
        if ref is None or not is_open or opened.answered.is_set():
            raise Refused("this was decided already", way_out="send it again to have it run")
        by = _by(message.scope, message.sender_id)
        if opened.ask.kind == "question":
            self._reply(opened, (message.text.strip(),), by, ref)
        else:
            answer = Answer("deny", reason=message.text.strip())
            words = "to be revised" if opened.ask.plan is not None else "denied"
            said = one_line(message.text, 100)
            self._decide(opened, answer, f"{words}{by}: {said}", ref)

    async def _show(self, opened: OpenAsk) -> None:
        run = opened.live.run
        *before, last = self._cards(opened)
        opened.card = last
        # A question rings: the engine waits.
        reply_to = None if run.prompt_ref is None else run.prompt_ref.message_id
        await self._shop.db.write(
            lambda conn: [
                put(
                    conn,
                    run.scope,
                    Outgoing(card, reply_to=reply_to),
                    kind="question",
                    run_id=run.id,
                    key=opened.key if card is last else f"closed:{opened.key}:{index}",
                )
                for index, card in enumerate([*before, last])
            ]
        )
        self._shop.transport(run.scope).wake(run.scope.chat)

    def _cards(self, opened: OpenAsk, notes: Collection[str] = ()) -> tuple[Card, ...]:
        run = opened.live.run
        return ask_card(
            opened.ask,
            engine=run.engine,
            max_units=self._shop.transport(run.scope).max_units,
            question=opened.question,
            selected=opened.selected,
            notes=tuple(notes),
            footer=self._shop.footer(run.engine, run.context, opened.live.thread),
            buttons=_rows(opened),
        )

    def _choose(self, opened: OpenAsk, what: str, press: Press) -> None:
        asked = opened.ask.questions[opened.question]
        by = _by(press.scope, press.sender_id)
        if what == "done" and asked.several:
            self._reply(opened, tuple(opened.selected), by, press.ref)
            return
        if not what.isdecimal() or int(what) >= len(asked.choices):
            return
        label = asked.choices[int(what)].label
        if not asked.several:
            self._reply(opened, (label,), by, press.ref)
            return
        if label in opened.selected:
            opened.selected.remove(label)
        else:
            opened.selected.append(label)
        self._redraw(opened, press.ref)

    def _reply(self, opened: OpenAsk, reply: tuple[str, ...], by: str, ref: MessageRef) -> None:
        opened.replies.append(reply)
        opened.selected = []
        if len(opened.replies) < len(opened.ask.questions):
            opened.question += 1
            self._redraw(opened, ref)
            return
        said = one_line("; ".join(", ".join(reply) or "nothing" for reply in opened.replies), 120)
        self._decide(opened, Answer("allow", replies=tuple(opened.replies)), f"{said}{by}", ref)

    def _redraw(self, opened: OpenAsk, ref: MessageRef, notes: Collection[str] = ()) -> None:
        opened.card = self._cards(opened, notes)[-1]
        self._shop.transport(opened.live.run.scope).edit(ref, opened.card)

    def _decide(self, opened: OpenAsk, answer: Answer, words: str, ref: MessageRef) -> None:
        opened.answer = answer
        opened.answered.set()
        opened.card = decided(opened.card, words)
        self._shop.transport(opened.live.run.scope).edit(ref, opened.card)

    async def _close(self, opened: OpenAsk, words: str) -> None:
        """Let the store know that this is over, and the card where nobody decided."""
        try:
            message_id = await self._shop.db.write(
                lambda conn: outbox.close_question(conn, opened.key, now_ms=now_ms())
            )
        except TakopiError as error:
            log.warning("ask.not_closed", why=error.what)
            return
        if opened.answer is None and message_id is not None:
            scope = opened.live.run.scope
            ref = MessageRef(scope.transport, scope.chat_id, message_id)
            self._shop.transport(scope).edit(ref, decided(opened.card, words))

    async def _mark_expired(self, press: Press, what: AskPress) -> None:
        """A card whose run is gone still had its buttons: take them off."""
        key = f"ask:{what.run}:{what.ask}"
        questions = await self._shop.db.read(
            lambda conn: dict(outbox.open_questions(conn, RunId(what.run)))
        )
        if key in questions:
            await expire_question(self._shop, press.scope, key, questions[key])
        elif all(run != what.run for run, _ in self._open):
            # It may have arrived twice, and nobody knows of the first.
            self._shop.transport(press.scope).clear_buttons(press.ref)


@dataclass(frozen=True, slots=True)
class _Port:
    asks: Asks
    live: Live

    async def ask(self, ask: Ask) -> Answer:
        """Show the ask to a person and wait for what they decide."""
        return await self.asks.ask(self.live, ask)


async def expire_question(shop: Workshop, scope: Scope, key: str, payload: bytes) -> None:
    """Let the card of a question say that its run is gone."""
    card = msgspec.msgpack.decode(payload, type=Outgoing).card
    message_id = await shop.db.write(lambda conn: outbox.close_question(conn, key, now_ms=now_ms()))
    if message_id is not None:
        ref = MessageRef(scope.transport, scope.chat_id, message_id)
        shop.transport(scope).edit(ref, decided(card, "expired with its run"))


def _rows(opened: OpenAsk) -> tuple[tuple[Button, ...], ...]:
    ask = opened.ask

    def button(label: str, what: str) -> Button:
        press = AskPress(opened.live.id, opened.number, opened.question, what)
        return Button(one_line(label, LABEL_CHARS) or what, ASK.encode(press))

    if ask.kind == "question":
        asked = ask.questions[opened.question]
        rows = tuple(
            (
                button(
                    f"✓ {choice.label}" if choice.label in opened.selected else choice.label, str(n)
                ),
            )
            for n, choice in enumerate(asked.choices)
        )
        return (*rows, (button("Done", "done"),)) if asked.several else rows
    if ask.plan is not None:
        return ((button("Approve", "allow"), button("Revise", "reason")),)
    thread = ((button("Allow for this thread", "thread"),),) if ask.for_thread else ()
    denials = (button("Deny", "deny"), button("Deny with a reason", "reason"))
    return ((button("Allow once", "allow"),), *thread, denials)


def _by(scope: Scope, sender_id: int | None) -> str:
    """Who decided: in a private chat that needs no saying."""
    return "" if sender_id == scope.chat_id else f" by {sender_id}"
