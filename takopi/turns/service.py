"""Drives sessions: plans a turn, carries out what was approved, and prepares the turn after it.

The next turn is built in a hidden folder, then the report is written, then the folder gets its
name. A crash between any two steps leaves a whole session, and nothing is ever executed twice. One
takopi at a time works on a session.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import trio

from takopi.core.errors import Refused
from takopi.kit.atomic import sync_folder
from takopi.prompts.aggregator import question_prompt
from takopi.turns import journal
from takopi.turns.actions import Bench, perform
from takopi.turns.agents import DEFAULT, known_agents, read_prompt
from takopi.turns.fences import correct
from takopi.turns.following import build_next, fill, settle, stamp
from takopi.turns.grammar import Malformed, parse
from takopi.turns.hold import hold
from takopi.turns.journal import Line, Past
from takopi.turns.layout import (
    Meta,
    Session,
    Turn,
    read_text,
    session_folder,
    write_text,
    write_yaml,
)
from takopi.turns.machine import Choice, final_actions
from takopi.turns.memos import changed, read_memos, write_memos
from takopi.turns.outcome import Done, Outcome
from takopi.turns.payload import make_payload, read_circles
from takopi.turns.plan import Create, Edit, Execute, Memo, Plan, Research
from takopi.turns.replan import feedback, replans_before
from takopi.turns.report import Facts, failure_report, report, skipped_report
from takopi.turns.transition import Start
from takopi.turns.validate import StrictContext, World, validate

Ask = Callable[[str, str], Awaitable[str]]
"""Asks a model: a system prompt and a message, for one text."""

At = Callable[[str], None]
SKIPPED = "skipped: an earlier action failed"
INTERRUPTED = "interrupted: it may have run"
ONCE = (Create, Edit, Execute, Research)
"""Actions that leave something behind; the others may be begun again."""


def _pass_by(step: str) -> None:
    """Nothing stops at a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What may be set about sessions."""

    max_file_bytes: int = 256 * 1024
    strict_context: StrictContext = "turn"
    max_replans: int = 3
    model: str = ""
    """The model that plans, as the ledger names it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan that passed its checks; `digest` is what an approval of it names."""

    turn: Turn
    plan: Plan
    digest: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """A plan that failed its checks."""

    turn: Turn
    title: str
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A turn that a crash has stopped while it was carried out, and how far it came."""

    turn: Turn
    past: Past


def create_session(root: Path, name: str, *, agent: str = DEFAULT) -> Session:
    """Make a session with its first turn, whole or not at all."""
    now = datetime.now().astimezone()
    folder = session_folder(root, name, today=now.date())
    prompt = read_prompt(root, agent)
    hidden = folder.with_name(f".{folder.name}")
    shutil.rmtree(hidden, ignore_errors=True)
    (hidden / "01").mkdir(parents=True)
    write_text(hidden / "session.context", "")
    # Exact, since the newest session is the one that was created last.
    created = now.astimezone(UTC).isoformat(timespec="microseconds")
    meta = Meta(turn_id="01", agent=agent.lower(), created=created)
    fill(hidden / "01", Start(meta, (), prompt))
    hidden.rename(folder)
    sync_folder(folder.parent)
    return Session(folder)


def write_input(turn: Turn, rules: Rules, *, environ: Mapping[str, str]) -> Path:
    """Write a turn's input.md as things stand now."""
    payload = make_payload(turn, environ=environ, max_file_bytes=rules.max_file_bytes)
    write_text(turn.path("input.md"), payload)
    return turn.path("input.md")


async def plan_turn(
    turn: Turn, message: str, *, ask: Ask, rules: Rules, environ: Mapping[str, str]
) -> Turn:
    """Have a turn planned; one that is reported leaves its place to the next."""
    with hold(turn.session):
        return await _plan_turn(turn, message, ask=ask, rules=rules, environ=environ)


def pending_request(turn: Turn) -> str:
    """What a turn was asked for, or was to correct, and never planned; else nothing."""
    return "" if turn.has("plan.md") else turn.meta().user_request


async def _plan_turn(
    turn: Turn, message: str, *, ask: Ask, rules: Rules, environ: Mapping[str, str]
) -> Turn:
    turn = await trio.to_thread.run_sync(settle, turn)
    if turn.has("report.md"):
        raise Refused(
            f"turn {turn.id} is reported already, so its plan cannot change",
            way_out="plan the newest turn of the session",
        )
    if journal.read_past(turn) is not None:
        raise Refused(
            f"turn {turn.id} is being carried out, so its plan cannot change",
            way_out="takopi session execute shows how far it came",
        )
    await trio.to_thread.run_sync(partial(write_input, turn, rules, environ=environ))
    payload, system = read_text(turn.path("input.md")), read_text(turn.path("system_prompt.xml"))
    prompt = question_prompt(system, f"{payload}\n## User Request\n\n{message}\n")
    if not turn.has("plan.md"):
        # What is asked and never answered is there for the next try.
        await trio.to_thread.run_sync(_note_request, turn, message, rules.model)
    answer = await ask(prompt.system or "", prompt.user)
    await trio.to_thread.run_sync(write_text, turn.path("plan.md"), correct(answer))
    # Before this the plan of an older request would pass for the answer to this one.
    await trio.to_thread.run_sync(_note_request, turn, message, rules.model)
    return turn


def _note_request(turn: Turn, message: str, model: str) -> None:
    noted = msgspec.structs.replace(turn.meta(), user_request=message, model=model)
    write_yaml(turn.path("meta.yaml"), noted)


def check(turn: Turn, rules: Rules) -> Proposal | Invalid | Interrupted:
    """Read a turn's plan and check it against the project as it is.

    One that is under way has changed the project already, so that its journal counts instead.
    """
    if turn.has("report.md"):
        raise Refused(f"turn {turn.id} is done", way_out="takopi session resume goes on")
    if past := journal.read_past(turn):
        with hold(turn.session):  # what somebody is carrying out is not interrupted
            return Interrupted(turn, past)
    text = read_text(turn.path("plan.md"))
    if not text.strip():
        raise Refused(
            f"turn {turn.id} has no plan", way_out="have it planned: takopi session plan -m …"
        )
    plan = parse(text)
    if isinstance(plan, Malformed):
        return Invalid(turn, "unreadable plan", tuple(str(fault) for fault in plan.faults))
    circles = read_circles(turn)
    world = World(
        root=turn.root,
        memos=read_memos(turn.root),
        turn_context=circles.turn,
        other_context=(*circles.session, *circles.project),
        agents=known_agents(turn.root),
        has_caller=turn.meta().caller_turn_id is not None,
        strict_context=rules.strict_context,
    )
    if errors := validate(plan, world):
        return Invalid(turn, plan.title, errors)
    return Proposal(turn, plan, digest_of(text))


async def replan(
    invalid: Invalid, *, ask: Ask, rules: Rules, environ: Mapping[str, str]
) -> Turn | None:
    """Report a plan that failed, and have the next turn planned; None after too many in a row."""
    turn = invalid.turn
    with hold(turn.session):
        _require_untouched(turn)
        again = replans_before(turn) < rules.max_replans
        message = feedback(invalid.errors, read_text(turn.path("plan.md"))) if again else ""

        def log() -> None:
            of = turn.id if again else None
            build_next(turn, (), report_path=None, replan_of=of, request=message)
            facts = _facts(turn, stamp())
            text = failure_report(invalid.title, facts, errors=invalid.errors)
            write_text(turn.path("report.md"), text)

        await trio.to_thread.run_sync(log)
        if not again:
            await trio.to_thread.run_sync(settle, turn)
            return None
        return await _plan_turn(turn, message, ask=ask, rules=rules, environ=environ)


def skip(proposal: Proposal, *, message: str) -> Turn:
    """Report that a plan was not wanted; the next turn is ready for another."""
    turn = proposal.turn
    with hold(turn.session):
        _require_untouched(turn)
        build_next(turn, (), report_path=turn.relative("report.md"), request=message)
        text = skipped_report(proposal.plan, _facts(turn, stamp()), message=message)
        write_text(turn.path("report.md"), text)
        return settle(turn)


def _require_untouched(turn: Turn) -> None:
    """`Refused` if a turn has been carried out, in part or whole, since somebody looked at it."""
    if turn.has("report.md"):
        raise Refused(f"turn {turn.id} is done", way_out="takopi session resume goes on")
    if journal.read_past(turn) is not None:
        raise Refused(
            f"turn {turn.id} was carried out in part", way_out="takopi session resume goes on"
        )


async def execute(
    proposal: Proposal, bench: Bench, *, choice: Choice, at: At = _pass_by
) -> tuple[Done, ...]:
    """Carry out what was chosen of a plan, in its order, then report and prepare the next turn.

    `at` is called with the name of each step that has been taken.
    """
    turn = proposal.turn
    with hold(turn.session):
        text = read_text(turn.path("plan.md"))
        if digest_of(text) != proposal.digest:
            raise Refused("the plan has changed since it was shown", way_out="look at it again")
        _require_untouched(turn)
        if not all(map(journal.can_be_kept, choice.edits.values())):
            raise Refused("a changed action cannot be noted down", way_out="change it differently")
        started = stamp()
        line = journal.opening(text, choice, started=started)
        await trio.to_thread.run_sync(journal.append, turn, line)
        at("opened")
        past = Past(plan=proposal.plan, choice=choice, started=started)
        return await _carry_out(turn, past, bench=bench, go_on=True, at=at)


async def recover(
    interrupted: Interrupted, bench: Bench, *, go_on: bool, at: At = _pass_by
) -> tuple[Done, ...]:
    """Bring a turn that a crash has interrupted to its report.

    What has ended is told and what may have run is told as such: neither is done again. The rest
    is carried out if the person wants to `go_on`, and left out of a turn that has failed otherwise.
    """
    turn = interrupted.turn
    with hold(turn.session):
        past = None if turn.has("report.md") else journal.read_past(turn)
        if past is None:
            raise Refused(f"turn {turn.id} is done", way_out="takopi session resume goes on")
        return await _carry_out(turn, past, bench=bench, go_on=go_on, at=at)


async def _carry_out(
    turn: Turn, past: Past, *, bench: Bench, go_on: bool, at: At
) -> tuple[Done, ...]:
    plan, choice = past.plan, past.choice
    memos = tuple(memo for index, memo in enumerate(plan.memos) if index in choice.memos)
    if not past.remembered and go_on:
        await trio.to_thread.run_sync(_remember, turn, memos)
        at("remembered")
    elif not past.remembered:
        memos = await trio.to_thread.run_sync(_already_remembered, turn, memos)
    done: list[Done] = []
    halted = "" if go_on else "skipped: the turn was interrupted"
    for index, action in enumerate(final_actions(choice, plan)):
        wanted = index in choice.actions
        if index in past.ended:
            outcome = past.ended[index]
        elif not wanted:
            outcome = Outcome(status="SKIPPED", reason="skipped: not approved")
        elif index == past.unsure and isinstance(action, ONCE):
            outcome = Outcome(status="FAILURE", reason=INTERRUPTED)
            line = Line(end=index, outcome=outcome)
            await trio.to_thread.run_sync(journal.append, turn, line)
        elif halted:
            outcome = Outcome(status="SKIPPED", reason=halted)
        else:
            await trio.to_thread.run_sync(journal.append, turn, Line(begin=index))
            at(f"begun {index}")
            outcome = await perform(action, bench)
            at(f"done {index}")
            line = Line(end=index, outcome=outcome)
            await trio.to_thread.run_sync(journal.append, turn, line)
            at(f"ended {index}")
        if outcome.status == "FAILURE" and outcome.reason != INTERRUPTED:
            halted = SKIPPED
        modified = index in choice.edits
        done.append(Done(action=action, outcome=outcome, approved=wanted, modified=modified))
    finish = partial(_finish, turn, past, memos=memos, done=tuple(done), gave_up=not go_on, at=at)
    await trio.to_thread.run_sync(finish)
    return tuple(done)


def _remember(turn: Turn, memos: tuple[Memo, ...]) -> None:
    if memos:
        write_memos(turn.root, changed(read_memos(turn.root), memos))
    journal.append(turn, Line(remembered=True))


def _already_remembered(turn: Turn, memos: tuple[Memo, ...]) -> tuple[Memo, ...]:
    """All or none of them: they may have been written before the crash, and not noted yet."""
    known = read_memos(turn.root)
    return memos if changed(known, memos) == known else ()


def _finish(
    turn: Turn,
    past: Past,
    *,
    memos: tuple[Memo, ...],
    done: tuple[Done, ...],
    gave_up: bool,
    at: At,
) -> None:
    build_next(turn, done, report_path=turn.relative("report.md"))
    at("built")
    text = report(past.plan, _facts(turn, past.started), memos=memos, done=done, gave_up=gave_up)
    write_text(turn.path("report.md"), text)
    at("reported")
    settle(turn)
    at("named")


def _facts(turn: Turn, started: str) -> Facts:
    return Facts(
        plan_path=turn.relative("plan.md"),
        started=started,
        ended=stamp(),
        user_request=turn.meta().user_request,
    )


def digest_of(text: str) -> str:
    """What an approval of this plan names."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
