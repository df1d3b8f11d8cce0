from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import get_args

import pytest

from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.events import Usage
from takopi.core.ids import EngineId, MessageRef, ResumeToken, RunId, Scope
from takopi.store import ledger, threads
from takopi.store.ledger import Ending, NewRun, Run
from tests.store.rows import CHAT, CLAUDE, CWD, TOKEN, message, queue_run, receive, start_run

ENDINGS: tuple[Ending, ...] = get_args(Ending)


def found(conn: sqlite3.Connection, run_id: RunId) -> Run:
    run = ledger.find(conn, run_id)
    assert run is not None
    return run


def test_a_run_comes_back_as_it_was_asked_for(conn: sqlite3.Connection) -> None:
    (got,) = receive(conn, 7)
    first = queue_run(conn)
    new = NewRun(
        Scope("telegram", 100, 5),
        "fix\x00 it \N{OCTOPUS}",
        CLAUDE,
        model="opus",
        thread=TOKEN,
        context=Context("web", "feature/x"),
        cwd=Path(os.fsdecode(b"/tmp/\xff")),
        prompt_ref=message(3),
        inbox_id=got.id,
        retry_of=first,
    )
    run = ledger.add(conn, new, now_ms=1234)

    assert run == found(conn, run.id)
    assert run.state == "queued"
    assert run.created_ms == 1234
    assert (run.started_ms, run.ended_ms, run.answer, run.error) == (None, None, None, None)
    for name in NewRun.__dataclass_fields__:
        assert getattr(run, name) == getattr(new, name), name


def test_one_message_starts_at_most_one_run(conn: sqlite3.Connection) -> None:
    (got,) = receive(conn, 7)
    first = ledger.add(conn, NewRun(CHAT, "x", CLAUDE, inbox_id=got.id), now_ms=1)

    with pytest.raises(Refused, match=f"started run {first.id} already"):
        ledger.add(conn, NewRun(CHAT, "x", CLAUDE, inbox_id=got.id), now_ms=2)
    assert len(ledger.last(conn, 10)) == 1


def test_the_table_itself_holds_one_run_for_a_message(conn: sqlite3.Connection) -> None:
    (got,) = receive(conn, 7)
    ledger.add(conn, NewRun(CHAT, "x", CLAUDE, inbox_id=got.id), now_ms=1)
    other = queue_run(conn)

    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        conn.execute("UPDATE runs SET inbox_id = ? WHERE id = ?", (got.id, other))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_running_run_ends_once_and_stays_ended(conn: sqlite3.Connection, ending: Ending) -> None:
    run_id = start_run(conn)
    usage = Usage(input_tokens=10, output_tokens=None, cached_tokens=0, cost_usd=0.25)
    ended = ledger.end(conn, run_id, ending, now_ms=3000, answer="so", error="no", usage=usage)

    assert ended == found(conn, run_id)
    assert (ended.state, ended.started_ms, ended.ended_ms) == (ending, 2000, 3000)
    assert (ended.answer, ended.error, ended.usage, ended.cwd) == ("so", "no", usage, CWD)
    for again in ENDINGS:
        with pytest.raises(Refused, match=f"is {ending} and cannot become {again}"):
            ledger.end(conn, run_id, again, now_ms=4000)
    with pytest.raises(Refused, match="cannot become running"):
        ledger.start(conn, run_id, cwd=CWD, now_ms=4000)
    assert found(conn, run_id) == ended


@pytest.mark.parametrize("ending", ["cancelled", "error"])
def test_a_queued_run_can_be_cancelled_or_fail(conn: sqlite3.Connection, ending: Ending) -> None:
    run_id = queue_run(conn)

    assert ledger.end(conn, run_id, ending, now_ms=3000).state == ending


@pytest.mark.parametrize("ending", ["done", "interrupted"])
def test_a_queued_run_cannot_end_as_if_it_had_run(conn: sqlite3.Connection, ending: Ending) -> None:
    run_id = queue_run(conn)

    with pytest.raises(Refused, match=f"is queued and cannot become {ending}"):
        ledger.end(conn, run_id, ending, now_ms=3000)


def test_a_run_starts_once(conn: sqlite3.Connection) -> None:
    run_id = start_run(conn)

    with pytest.raises(Refused, match="is running and cannot become running"):
        ledger.start(conn, run_id, cwd=CWD, now_ms=2001)


def test_an_unknown_run_is_refused_with_a_reason(conn: sqlite3.Connection) -> None:
    with pytest.raises(Refused, match="run 99 is not known") as caught:
        ledger.end(conn, RunId(99), "done", now_ms=1)
    assert "keep_days" in caught.value.way_out
    assert ledger.find(conn, RunId(99)) is None


def test_recovery_interrupts_what_ran_and_leaves_what_was_queued(
    conn: sqlite3.Connection,
) -> None:
    queued = queue_run(conn)
    running = start_run(conn)
    ended = start_run(conn)
    ledger.end(conn, ended, "done", now_ms=2500)

    recovered = ledger.recover(conn, now_ms=9000)

    assert [(run.id, run.state, run.ended_ms) for run in recovered] == [
        (running, "interrupted", 9000)
    ]
    assert [run.id for run in ledger.unfinished(conn)] == [queued]
    assert found(conn, ended).ended_ms == 2500
    assert ledger.recover(conn, now_ms=9001) == ()


def test_the_last_runs_come_newest_first(conn: sqlite3.Connection) -> None:
    ids = [queue_run(conn) for _ in range(5)]

    assert [run.id for run in ledger.last(conn, 3)] == ids[:1:-1]


def test_an_edit_replaces_the_prompt_only_while_queued(conn: sqlite3.Connection) -> None:
    run_id = queue_run(conn)

    assert ledger.set_prompt(conn, run_id, "better")
    ledger.start(conn, run_id, cwd=CWD, now_ms=2000)
    assert not ledger.set_prompt(conn, run_id, "too late")
    assert found(conn, run_id).prompt == "better"


def test_all_messages_of_a_run_learn_its_thread_at_once(conn: sqlite3.Connection) -> None:
    run_id = start_run(conn, prompt_message=1)
    ledger.set_progress(conn, run_id, message(2))
    other = start_run(conn, prompt_message=3)
    assert threads.thread_of(conn, message(1)) is None
    assert threads.run_of(conn, message(1)) == run_id

    ledger.set_thread(conn, run_id, TOKEN, now_ms=2100, model="opus-5")
    threads.map_message(conn, message(4), run_id=run_id)

    assert [threads.thread_of(conn, message(n)) for n in (1, 2, 3, 4)] == [
        TOKEN,
        TOKEN,
        None,
        TOKEN,
    ]
    assert threads.run_of(conn, message(3)) == other
    run = found(conn, run_id)
    assert (run.thread, run.model, run.progress_ref) == (TOKEN, "opus-5", message(2))


def test_a_thread_remembers_where_its_last_run_worked(conn: sqlite3.Connection) -> None:
    for number, branch in enumerate(["one", "two"]):
        new = NewRun(CHAT, "x", CLAUDE, context=Context("web", branch))
        run_id = ledger.add(conn, new, now_ms=1).id
        ledger.start(conn, run_id, cwd=Path("/w", branch), now_ms=2)
        ledger.set_thread(conn, run_id, TOKEN, now_ms=10 + number)

    assert threads.find(conn, TOKEN) == threads.Thread(
        TOKEN, Context("web", "two"), Path("/w/two"), 11
    )


@pytest.mark.parametrize("state", ["queued", "done"])
def test_only_a_running_run_gets_a_thread(conn: sqlite3.Connection, state: str) -> None:
    run_id = queue_run(conn)
    if state == "done":
        ledger.start(conn, run_id, cwd=CWD, now_ms=1)
        ledger.end(conn, run_id, "done", now_ms=2)

    with pytest.raises(Refused, match=f"is {state} and cannot get a thread"):
        ledger.set_thread(conn, run_id, TOKEN, now_ms=3)


def test_a_thread_of_one_engine_never_goes_on_in_another(conn: sqlite3.Connection) -> None:
    codex = ResumeToken(EngineId("codex"), "abc")
    with pytest.raises(ValueError, match="codex"):
        ledger.add(conn, NewRun(CHAT, "x", CLAUDE, thread=codex), now_ms=1)
    with pytest.raises(ValueError, match="codex"):
        ledger.set_thread(conn, start_run(conn), codex, now_ms=1)


def test_a_message_of_another_chat_is_not_a_runs_message(conn: sqlite3.Connection) -> None:
    with pytest.raises(ValueError, match="another chat"):
        ledger.set_progress(conn, queue_run(conn), MessageRef("telegram", 555, 1))


def test_a_run_knows_who_tried_it_again(conn: sqlite3.Connection) -> None:
    run_id = queue_run(conn)
    assert ledger.retried_as(conn, run_id) is None
    again = ledger.add(conn, NewRun(CHAT, "x", CLAUDE, retry_of=run_id), now_ms=1)

    assert ledger.retried_as(conn, run_id) == again.id


def test_a_waiting_run_adopts_the_thread_it_waited_for(conn: sqlite3.Connection) -> None:
    run_id = queue_run(conn)
    ledger.adopt_thread(conn, run_id, TOKEN)
    assert found(conn, run_id).thread == TOKEN
    assert threads.thread_of(conn, message(1)) == TOKEN


def test_a_run_that_has_begun_or_has_a_thread_adopts_none(conn: sqlite3.Connection) -> None:
    begun = start_run(conn)
    ledger.adopt_thread(conn, begun, TOKEN)
    assert found(conn, begun).thread is None
    other = ResumeToken(CLAUDE, "other")
    waiting = queue_run(conn, prompt_message=2)
    ledger.adopt_thread(conn, waiting, other)
    ledger.adopt_thread(conn, waiting, TOKEN)
    assert found(conn, waiting).thread == other


def test_a_thread_of_another_engine_is_not_adopted(conn: sqlite3.Connection) -> None:
    run_id = queue_run(conn)
    ledger.adopt_thread(conn, run_id, ResumeToken(EngineId("pi"), "x"))
    assert found(conn, run_id).thread is None


def test_the_first_run_of_a_thread_began_it(conn: sqlite3.Connection) -> None:
    first, second = start_run(conn), start_run(conn, prompt_message=2)
    for run_id in (first, second):
        ledger.set_thread(conn, run_id, TOKEN, now_ms=3000)
    assert ledger.began_thread(conn, found(conn, first))
    assert not ledger.began_thread(conn, found(conn, second))
    assert ledger.began_thread(conn, found(conn, queue_run(conn, prompt_message=3)))
