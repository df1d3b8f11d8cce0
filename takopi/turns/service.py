"""Drives sessions: plans a turn, carries out what was approved, and prepares the turn after it.

The next turn is built in a hidden folder, then the report is written, then the folder gets its
name. A crash between any two steps leaves a whole session, and nothing is ever executed twice.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import trio

from takopi.core.errors import Refused
from takopi.kit.atomic import sync_folder
from takopi.prompts.aggregator import question_prompt
from takopi.turns import journal
from takopi.turns.actions import Bench, perform
from takopi.turns.agents import DEFAULT, known_agents, read_prompt
from takopi.turns.fences import correct
from takopi.turns.grammar import Malformed, parse
from takopi.turns.journal import Line, Past
from takopi.turns.layout import (
    Meta,
    Session,
    Turn,
    read_context,
    read_text,
    session_folder,
    write_context,
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
from takopi.turns.transition import Start, next_start
from takopi.turns.validate import StrictContext, World, validate

Ask = Callable[[str, str], Awaitable[str]]
"""Asks a model: a system prompt and a message, for one text."""

At = Callable[[str], None]
SKIPPED = "skipped: an earlier action failed"
INTERRUPTED = "interrupted: it may have run"
_ONCE = (Create, Edit, Execute, Research)
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
    meta = Meta(turn_id="01", agent=agent.lower(), created=_stamp())
    _fill(hidden / "01", Start(meta, (), prompt))
    hidden.rename(folder)
    sync_folder(folder.parent)
    return Session(folder)


def write_input(turn: Turn, rules: Rules, *, environ: Mapping[str, str]) -> Path:
    """Write a turn's input.md as things stand now."""
    payload = make_payload(turn, environ=environ, max_file_bytes=rules.max_file_bytes)
    write_text(turn.path("input.md"), payload)
    return turn.path("input.md")


def settle(turn: Turn) -> Turn:
    """The turn that is to be worked on: a reported one is followed by the next."""
    if not turn.has("report.md"):
        return turn
    following, hidden = turn.next(), _hidden(turn)
    if not following.folder.exists():
        if not hidden.is_dir():
            _build(turn, (), report_path=turn.relative("report.md"))
        hidden.rename(following.folder)
        sync_folder(turn.session.folder)
    return following


async def plan_turn(
    turn: Turn, message: str, *, ask: Ask, rules: Rules, environ: Mapping[str, str]
) -> Turn:
    """Have a turn planned; one that is reported leaves its place to the next."""
    turn = await trio.to_thread.run_sync(settle, turn)
    if turn.has("report.md"):
        raise Refused(
            f"turn {turn.id} is reported already, so its plan cannot change",
            way_out="plan the newest turn of the session",
        )
    if journal.read_past(turn) is not None:
        raise Refused(
            f"turn {turn.id} is being carried out, so its plan cannot change",
            way_out="session execute shows how far it came",
        )
    await trio.to_thread.run_sync(partial(write_input, turn, rules, environ=environ))
    payload, system = read_text(turn.path("input.md")), read_text(turn.path("system_prompt.xml"))
    prompt = question_prompt(system, f"{payload}\n## User Request\n\n{message}\n")
    answer = await ask(prompt.system or "", prompt.user)
    await trio.to_thread.run_sync(_save_plan, turn, message, correct(answer), rules.model)
    return turn


def _save_plan(turn: Turn, message: str, plan: str, model: str) -> None:
    meta = turn.meta()
    noted = Meta(
        turn_id=meta.turn_id,
        parent_turn_id=meta.parent_turn_id,
        caller_turn_id=meta.caller_turn_id,
        agent=meta.agent,
        created=meta.created,
        user_request=message,
        model=model,
        replan_of=meta.replan_of,
    )
    write_yaml(turn.path("meta.yaml"), noted)
    write_text(turn.path("plan.md"), plan)


def check(turn: Turn, rules: Rules) -> Proposal | Invalid | Interrupted:
    """Read a turn's plan and check it against the project as it is.

    One that is under way has changed the project already, so that its journal counts instead.
    """
    if turn.has("report.md"):
        raise Refused(f"turn {turn.id} is done", way_out="session resume goes on")
    if past := journal.read_past(turn):
        return Interrupted(turn, past)
    text = read_text(turn.path("plan.md"))
    if not text.strip():
        raise Refused(f"turn {turn.id} has no plan", way_out="have it planned: session plan -m …")
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
    return Proposal(turn, plan, _digest(text))


async def replan(
    invalid: Invalid, *, ask: Ask, rules: Rules, environ: Mapping[str, str]
) -> Turn | None:
    """Report a plan that failed, and have the next turn planned; None after too many in a row."""
    turn = invalid.turn
    text = read_text(turn.path("plan.md"))
    again = replans_before(turn) < rules.max_replans

    def log() -> None:
        _build(turn, (), report_path=None, replan_of=turn.id if again else None)
        facts = _facts(turn, _stamp())
        write_text(
            turn.path("report.md"), failure_report(invalid.title, facts, errors=invalid.errors)
        )

    await trio.to_thread.run_sync(log)
    if not again:
        await trio.to_thread.run_sync(settle, turn)
        return None
    message = feedback(invalid.errors, text)
    return await plan_turn(turn, message, ask=ask, rules=rules, environ=environ)


def skip(proposal: Proposal, *, message: str) -> Turn:
    """Report that a plan was not wanted; the next turn is ready for another."""
    turn = proposal.turn
    _build(turn, (), report_path=turn.relative("report.md"))
    text = skipped_report(proposal.plan, _facts(turn, _stamp()), message=message)
    write_text(turn.path("report.md"), text)
    return settle(turn)


async def execute(
    proposal: Proposal, bench: Bench, *, choice: Choice, at: At = _pass_by
) -> tuple[Done, ...]:
    """Carry out what was chosen of a plan, in its order, then report and prepare the next turn.

    `at` is called with the name of each step that has been taken.
    """
    turn, text = proposal.turn, read_text(proposal.turn.path("plan.md"))
    if _digest(text) != proposal.digest:
        raise Refused("the plan has changed since it was shown", way_out="look at it again")
    if turn.has("report.md"):
        raise Refused(f"turn {turn.id} is done", way_out="session resume goes on")
    if journal.read_past(turn) is not None:
        raise Refused(f"turn {turn.id} was carried out in part", way_out="session resume goes on")
    if not all(map(journal.can_be_kept, choice.edits.values())):
        raise Refused("a changed action cannot be noted down", way_out="change it differently")
    started = _stamp()
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
    is carried out if the person wants to `go_on`, and left out otherwise.
    """
    return await _carry_out(interrupted.turn, interrupted.past, bench=bench, go_on=go_on, at=at)


async def _carry_out(
    turn: Turn, past: Past, *, bench: Bench, go_on: bool, at: At
) -> tuple[Done, ...]:
    plan, choice = past.plan, past.choice
    memos = tuple(memo for index, memo in enumerate(plan.memos) if index in choice.memos)
    if not past.remembered:
        await trio.to_thread.run_sync(_remember, turn, memos)
        at("remembered")
    done: list[Done] = []
    halted = "" if go_on else "skipped: the turn was interrupted"
    for index, action in enumerate(final_actions(choice, plan)):
        wanted = index in choice.actions
        if index in past.ended:
            outcome = past.ended[index]
        elif not wanted:
            outcome = Outcome(status="SKIPPED", reason="skipped: not approved")
        elif index == past.unsure and isinstance(action, _ONCE):
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
    finish = partial(_finish, turn, past, memos=memos, done=tuple(done), at=at)
    await trio.to_thread.run_sync(finish)
    return tuple(done)


def _remember(turn: Turn, memos: tuple[Memo, ...]) -> None:
    if memos:
        write_memos(turn.root, changed(read_memos(turn.root), memos))
    journal.append(turn, Line(remembered=True))


def _finish(
    turn: Turn, past: Past, *, memos: tuple[Memo, ...], done: tuple[Done, ...], at: At
) -> None:
    _build(turn, done, report_path=turn.relative("report.md"))
    at("built")
    text = report(past.plan, _facts(turn, past.started), memos=memos, done=done)
    write_text(turn.path("report.md"), text)
    at("reported")
    settle(turn)
    at("named")


def _build(
    turn: Turn, done: tuple[Done, ...], *, report_path: str | None, replan_of: str | None = None
) -> None:
    """Put the next turn together beside the others, where nobody takes it for one."""
    hidden = _hidden(turn)
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir()
    start = next_start(
        _start_of(turn),
        turn.next().id,
        done=done,
        report=report_path,
        prompt_of=lambda agent: read_prompt(turn.root, agent),
        turn_of=lambda turn_id: _start_of(turn.session.turn(turn_id)),
        created=_stamp(),
        replan_of=replan_of,
    )
    _fill(hidden, start)


def _fill(folder: Path, start: Start) -> None:
    write_text(folder / "system_prompt.xml", start.prompt)
    write_context(folder / "turn.context", start.context)
    write_yaml(folder / "meta.yaml", start.meta)


def _start_of(turn: Turn) -> Start:
    context = read_context(turn.path("turn.context"))
    return Start(turn.meta(), context, read_text(turn.path("system_prompt.xml")))


def _hidden(turn: Turn) -> Path:
    return turn.session.folder / f".{turn.next().id}"


def _facts(turn: Turn, started: str) -> Facts:
    return Facts(
        plan_path=turn.relative("plan.md"),
        started=started,
        ended=_stamp(),
        user_request=turn.meta().user_request,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
