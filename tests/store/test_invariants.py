"""Any order of events, with crashes between and inside them, against a model in plain Python."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from takopi.core.errors import Refused
from takopi.core.ids import EngineId, MessageRef, ResumeToken, RunId, Scope
from takopi.store import inbox, ledger, outbox, threads
from takopi.store.inbox import InboxId, Settlement, Update
from takopi.store.ledger import Ending, NewRun
from takopi.store.opening import Opened, open_file
from takopi.store.outbox import SendId
from takopi.store.schema import STEPS
from takopi.store.upkeep import prune
from tests.faults.promises import LONG

CLAUDE = EngineId("claude")
CHATS = (Scope("telegram", 100), Scope("telegram", 200))
SOURCE = "telegram:1"
DAY = 24 * 3600 * 1000

LEGAL = {
    "queued": {"cancelled", "error"},
    "running": {"done", "error", "cancelled", "interrupted"},
}


@dataclass
class Sending:
    chat: Scope
    run: int | None
    state: str = "waiting"
    maybe_sent: bool = False


@dataclass
class Model:
    offset: int = 0
    seen: set[int] = field(default_factory=set[int])
    inbox: dict[int, str] = field(default_factory=dict[int, str])
    runs: dict[int, str] = field(default_factory=dict[int, str])
    run_of_inbox: dict[int, int] = field(default_factory=dict[int, int])
    tokens: dict[int, ResumeToken] = field(default_factory=dict[int, ResumeToken])
    threads: dict[MessageRef, ResumeToken | None] = field(
        default_factory=dict[MessageRef, "ResumeToken | None"]
    )
    owners: dict[MessageRef, int] = field(default_factory=dict[MessageRef, int])
    sends: dict[int, Sending] = field(default_factory=dict[int, Sending])

    def queue(self, chat: Scope) -> list[tuple[int, Sending]]:
        open_states = {"waiting", "sending", "parked"}
        return [
            (number, send)
            for number, send in sorted(self.sends.items())
            if send.chat == chat and send.state in open_states
        ]


class Store(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="takopi-store-"))
        self.generation = 0
        self.model = Model()
        self.messages = 0
        self.opened: Opened | None = None

    @property
    def path(self) -> Path:
        return self.folder / f"state{self.generation}.db"

    @property
    def conn(self) -> sqlite3.Connection:
        assert self.opened is not None
        return self.opened.writer

    @contextmanager
    def change(self) -> Generator[sqlite3.Connection]:
        self.conn.execute("BEGIN IMMEDIATE")
        try:
            yield self.conn
        except BaseException:
            self.conn.rollback()
            raise
        self.conn.execute("COMMIT")

    def pick(self, names: dict[int, object] | dict[int, str], number: int) -> int:
        """One that exists, or now and then one that never did."""
        known = [*names, 10**6]
        return known[number % len(known)]

    def message(self) -> int:
        self.messages += 1
        return self.messages

    def teardown(self) -> None:
        self.close()
        shutil.rmtree(self.folder)

    def close(self) -> None:
        if self.opened is not None:
            self.opened.reader.close()
            self.opened.writer.close()

    @initialize()
    def open(self) -> None:
        self.opened = open_file(self.path, steps=STEPS, busy_s=5)
        assert self.opened.set_aside is None

    def recover(self) -> None:
        self.open()
        running = [number for number, state in self.model.runs.items() if state == "running"]
        on_their_way = [send for send in self.model.sends.values() if send.state == "sending"]
        with self.change() as conn:
            recovered = ledger.recover(conn, now_ms=5)
            assert outbox.recover(conn) == len(on_their_way)
            unfinished = [received.id for received in inbox.unfinished(conn)]
            for inbox_id in unfinished:
                inbox.settle(conn, inbox_id, "reported", now_ms=5)
        assert [run.id for run in recovered] == running
        assert unfinished == [n for n, state in self.model.inbox.items() if state == "taken"]
        for number in running:
            self.model.runs[number] = "interrupted"
        for number in unfinished:
            self.model.inbox[number] = "reported"
        for send in on_their_way:
            send.state, send.maybe_sent = "waiting", True

    @rule()
    def restart(self) -> None:
        self.close()
        self.recover()

    @rule()
    def crash_inside_a_change(self) -> None:
        """The next start finds the files as they lay in the middle of a transaction."""
        before = self.path
        self.conn.execute("BEGIN IMMEDIATE")
        inbox.record(
            self.conn, SOURCE, updates=[Update(10**7, 1, b"x")], next_offset=10**8, now_ms=1
        )
        ledger.add(self.conn, NewRun(CHATS[0], "x", CLAUDE), now_ms=1)
        outbox.add(self.conn, CHATS[0], kind="notice", payload=b"x", now_ms=1)
        self.generation += 1
        for suffix in ("", "-wal"):
            if Path(f"{before}{suffix}").exists():
                shutil.copyfile(f"{before}{suffix}", f"{self.path}{suffix}")
        self.conn.execute("ROLLBACK")
        self.close()
        self.recover()

    @rule(back=st.integers(0, 4), count=st.integers(1, 4))
    def arrive(self, back: int, count: int) -> None:
        first = max(0, self.model.offset - back)
        numbers = range(first, first + count)
        with self.change() as conn:
            fresh = inbox.record(
                conn,
                SOURCE,
                updates=[Update(n, 100, b"%d" % n) for n in numbers],
                next_offset=first + count,
                now_ms=1,
            )
        assert [received.update_id for received in fresh] == [
            n for n in numbers if n not in self.model.seen
        ]
        self.model.seen |= set(numbers)
        self.model.offset = first + count
        for received in fresh:
            self.model.inbox[received.id] = "new"

    @rule(which=st.integers(0, 20), chat=st.sampled_from(CHATS))
    def take_and_queue(self, which: int, chat: Scope) -> None:
        inbox_id = InboxId(self.pick(self.model.inbox, which))
        ref = MessageRef(chat.transport, chat.chat_id, self.message())
        run = None
        with self.change() as conn:
            if inbox.take(conn, inbox_id):
                new = NewRun(chat, "x", CLAUDE, prompt_ref=ref, inbox_id=inbox_id)
                run = ledger.add(conn, new, now_ms=1)
        assert (run is not None) == (self.model.inbox.get(inbox_id) == "new")
        if run is not None:
            self.model.inbox[inbox_id] = "taken"
            self.model.runs[run.id] = "queued"
            self.model.run_of_inbox[inbox_id] = run.id
            self.model.owners[ref] = run.id
            self.model.threads[ref] = None

    @rule(which=st.integers(0, 20))
    def a_message_never_starts_a_second_run(self, which: int) -> None:
        inbox_id = InboxId(self.pick(self.model.inbox, which))
        if inbox_id in self.model.run_of_inbox:
            with pytest.raises(Refused), self.change() as conn:
                ledger.add(conn, NewRun(CHATS[0], "x", CLAUDE, inbox_id=inbox_id), now_ms=1)

    @rule(which=st.integers(0, 20), outcome=st.sampled_from(get_args(Settlement)))
    def settle(self, which: int, outcome: Settlement) -> None:
        inbox_id = InboxId(self.pick(self.model.inbox, which))
        legal = self.model.inbox.get(inbox_id) == "taken"
        try:
            with self.change() as conn:
                inbox.settle(conn, inbox_id, outcome, now_ms=2)
        except Refused:
            assert not legal
        else:
            assert legal
            self.model.inbox[inbox_id] = outcome

    @rule(which=st.integers(0, 20))
    def start(self, which: int) -> None:
        run_id = RunId(self.pick(self.model.runs, which))
        legal = self.model.runs.get(run_id) == "queued"
        try:
            with self.change() as conn:
                ledger.start(conn, run_id, cwd=Path("/w"), now_ms=2)
        except Refused:
            assert not legal
        else:
            assert legal
            self.model.runs[run_id] = "running"

    @rule(which=st.integers(0, 20), thread=st.sampled_from("ab"))
    def learn_the_thread(self, which: int, thread: str) -> None:
        run_id = RunId(self.pick(self.model.runs, which))
        token = ResumeToken(CLAUDE, thread)
        legal = self.model.runs.get(run_id) == "running"
        try:
            with self.change() as conn:
                ledger.set_thread(conn, run_id, token, now_ms=2)
        except Refused:
            assert not legal
        else:
            assert legal
            self.model.tokens[run_id] = token
            for ref, owner in self.model.owners.items():
                if owner == run_id:
                    self.model.threads[ref] = token

    @rule(which=st.integers(0, 20), ending=st.sampled_from(get_args(Ending)))
    def end_and_answer(self, which: int, ending: Ending) -> None:
        run_id = RunId(self.pick(self.model.runs, which))
        legal = ending in LEGAL.get(self.model.runs.get(run_id, ""), ())
        try:
            with self.change() as conn:
                run = ledger.end(conn, run_id, ending, now_ms=3)
                send_id = outbox.add(
                    conn,
                    run.scope,
                    kind="answer",
                    payload=b"x",
                    now_ms=3,
                    run_id=run_id,
                    dedupe_key=f"run:{run_id}",
                )
        except Refused:
            assert not legal
        else:
            assert legal
            self.model.runs[run_id] = ending
            self.added(send_id, run.scope, run=run_id)

    def added(self, send_id: SendId, chat: Scope, *, run: int | None) -> None:
        parked = any(send.state == "parked" for _, send in self.model.queue(chat))
        assert send_id not in self.model.sends
        self.model.sends[send_id] = Sending(chat, run, "parked" if parked else "waiting")

    @rule(chat=st.sampled_from(CHATS))
    def notify(self, chat: Scope) -> None:
        with self.change() as conn:
            send_id = outbox.add(conn, chat, kind="notice", payload=b"x", now_ms=3)
        self.added(send_id, chat, run=None)

    @rule(chat=st.sampled_from(CHATS))
    def take_a_send(self, chat: Scope) -> None:
        with self.change() as conn:
            taken = outbox.take_next(conn, chat, now_ms=10)
        queue = self.model.queue(chat)
        if not queue or queue[0][1].state != "waiting":
            assert taken is None
        else:
            assert taken is not None
            number, send = queue[0]
            assert (taken.id, taken.maybe_sent) == (number, send.maybe_sent)
            send.state = "sending"

    @rule(which=st.integers(0, 20), how=st.sampled_from(["arrives", "fails", "back", "doubt"]))
    def end_a_send(self, which: int, how: str) -> None:
        known: dict[int, object] = dict(self.model.sends)
        send_id = SendId(self.pick(known, which))
        send = self.model.sends.get(send_id)
        message_id = self.message()
        try:
            with self.change() as conn:
                match how:
                    case "arrives":
                        outbox.confirm(conn, send_id, message_id=message_id, now_ms=4)
                    case "fails":
                        outbox.fail(conn, send_id, error="x", now_ms=4)
                    case _:
                        outbox.put_back(conn, send_id, not_before_ms=0, maybe_sent=how == "doubt")
        except Refused:
            assert send is None or send.state != "sending"
            return
        assert send is not None
        assert send.state == "sending"
        send.state = {"arrives": "sent", "fails": "failed"}.get(how, "waiting")
        send.maybe_sent |= how == "doubt"
        if how == "arrives" and send.run is not None:
            ref = MessageRef(send.chat.transport, send.chat.chat_id, message_id)
            self.model.owners[ref] = send.run
            self.model.threads[ref] = self.model.tokens.get(send.run)

    @rule(chat=st.sampled_from(CHATS))
    def lose_a_chat(self, chat: Scope) -> None:
        with self.change() as conn:
            outbox.park(conn, chat, now_ms=4)
        for _, send in self.model.queue(chat):
            send.state = "parked"

    @rule(chat=st.sampled_from(CHATS))
    def find_a_chat_again(self, chat: Scope) -> None:
        with self.change() as conn:
            outbox.unpark(conn, chat)
        for _, send in self.model.queue(chat):
            send.state = "waiting" if send.state == "parked" else send.state

    @precondition(lambda self: bool(self.model.runs))
    @rule()
    def grow_old(self) -> None:
        with self.change() as conn:
            prune(conn, keep_days=90, now_ms=1000 * DAY)
        model = self.model
        model.inbox = {n: s for n, s in model.inbox.items() if s in {"new", "taken"}}
        open_sends = {n: s for n, s in model.sends.items() if s.state not in {"sent", "failed"}}
        model.sends = open_sends
        unanswered = {send.run for send in open_sends.values()}
        model.runs = {
            n: s for n, s in model.runs.items() if s in {"queued", "running"} or n in unanswered
        }
        model.run_of_inbox = {n: run for n, run in model.run_of_inbox.items() if n in model.inbox}
        model.run_of_inbox = {n: run for n, run in model.run_of_inbox.items() if run in model.runs}
        model.owners = {ref: run for ref, run in model.owners.items() if run in model.runs}
        rows = self.conn.execute("SELECT update_id FROM inbox").fetchall()
        model.seen = {row["update_id"] for row in rows}

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        if self.opened is None:
            return
        # Through the reader, which sees only what was committed.
        conn, model = self.opened.reader, self.model
        assert (inbox.offset(conn, SOURCE) or 0) == model.offset
        states = conn.execute("SELECT id, state FROM inbox ORDER BY id")
        assert {row["id"]: row["state"] for row in states} == model.inbox
        runs = {run.id: run.state for run in ledger.last(conn, 10**6)}
        assert runs == model.runs
        sends = conn.execute("SELECT id, state, maybe_sent FROM outbox ORDER BY id")
        assert {row["id"]: (row["state"], bool(row["maybe_sent"])) for row in sends} == {
            number: (send.state, send.maybe_sent) for number, send in model.sends.items()
        }

    @invariant()
    def every_message_leads_to_its_thread(self) -> None:
        if self.opened is None:
            return
        for ref, token in self.model.threads.items():
            assert threads.thread_of(self.opened.reader, ref) == token
            assert threads.run_of(self.opened.reader, ref) == self.model.owners.get(ref)

    @invariant()
    def a_chat_never_has_two_sends_on_their_way_nor_some_parked_and_some_not(self) -> None:
        for chat in CHATS:
            states = [send.state for _, send in self.model.queue(chat)]
            assert states.count("sending") <= 1
            assert "parked" not in states or set(states) == {"parked"}


TestStore = Store.TestCase
TestStore.settings = settings(
    max_examples=2000 if LONG else 40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
