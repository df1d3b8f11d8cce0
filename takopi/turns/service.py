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
from takopi.turns.memos import changed, read_memos, write_memos
from takopi.turns.outcome import Done, Outcome
from takopi.turns.payload import make_payload, read_circles
from takopi.turns.plan import Memo, Plan
from takopi.turns.replan import feedback, replans_before
from takopi.turns.report import Facts, failure_report, report, skipped_report
from takopi.turns.transition import Start, next_start
from takopi.turns.validate import StrictContext, World, validate

Ask = Callable[[str, str], Awaitable[str]]
"""Asks a model: a system prompt and a message, for one text."""

SKIPPED = "skipped: an earlier action failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What may be set about sessions."""

    max_file_bytes: int = 256 * 1024
    strict_context: StrictContext = "turn"
    max_replans: int = 3


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
    if turn.has(journal.NAME):
        raise Refused(
            f"turn {turn.id} is being carried out, so its plan cannot change",
            way_out="session execute shows how far it came",
        )
    if turn.has("report.md"):
        raise Refused(
            f"turn {turn.id} is reported already, so its plan cannot change",
            way_out="plan the newest turn of the session",
        )
    await trio.to_thread.run_sync(partial(write_input, turn, rules, environ=environ))
    payload, system = read_text(turn.path("input.md")), read_text(turn.path("system_prompt.xml"))
    answer = await ask(system, f"{payload}\n## User Request\n\n{message}\n")
    await trio.to_thread.run_sync(_save_plan, turn, message, correct(answer))
    return turn


def _save_plan(turn: Turn, message: str, plan: str) -> None:
    meta = turn.meta()
    noted = Meta(
        turn_id=meta.turn_id,
        parent_turn_id=meta.parent_turn_id,
        caller_turn_id=meta.caller_turn_id,
        agent=meta.agent,
        created=meta.created,
        user_request=message,
        model=meta.model,
        replan_of=meta.replan_of,
    )
    write_yaml(turn.path("meta.yaml"), noted)
    write_text(turn.path("plan.md"), plan)


def check(turn: Turn, rules: Rules) -> Proposal | Invalid:
    """Read a turn's plan and check it against the project as it is."""
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
    proposal: Proposal, bench: Bench, *, approved: frozenset[int], past: Past | None = None
) -> tuple[Done, ...]:
    """Carry out the approved actions in their order, then report and prepare the next turn.

    `past` is what was done before a crash: it is told, and never done again.
    """
    turn, plan = proposal.turn, proposal.plan
    if _digest(read_text(turn.path("plan.md"))) != proposal.digest:
        raise Refused("the plan has changed since it was shown", way_out="look at it again")
    if past is None and turn.has(journal.NAME):
        raise Refused(f"turn {turn.id} was carried out in part", way_out="say how to go on")
    started = past.started if past else _stamp()
    opening = Line(plan=proposal.digest, approved=tuple(sorted(approved)), started=started)
    await trio.to_thread.run_sync(journal.append, turn, opening)
    done: list[Done] = []
    broken = False
    for index, action in enumerate(plan.actions):
        wanted = index in approved
        if past and index in past.ended:
            outcome = past.ended[index]
        elif past and index == past.unsure:
            outcome = Outcome(status="FAILURE", reason="interrupted: it may have run")
        elif not wanted or broken:
            reason = SKIPPED if wanted else "skipped: not approved"
            outcome = Outcome(status="SKIPPED", reason=reason)
        else:
            await trio.to_thread.run_sync(journal.append, turn, Line(begin=index))
            outcome = await perform(action, bench)
            line = Line(end=index, outcome=outcome)
            await trio.to_thread.run_sync(journal.append, turn, line)
        broken = broken or outcome.status == "FAILURE"
        done.append(Done(action=action, outcome=outcome, approved=wanted))
    await trio.to_thread.run_sync(_finish, proposal, tuple(done), started)
    return tuple(done)


def _finish(proposal: Proposal, done: tuple[Done, ...], started: str) -> None:
    turn, plan = proposal.turn, proposal.plan
    memos: tuple[Memo, ...] = plan.memos if any(one.approved for one in done) else ()
    if memos:
        write_memos(turn.root, changed(read_memos(turn.root), memos))
    _build(turn, done, report_path=turn.relative("report.md"))
    text = report(plan, _facts(turn, started), memos=memos, done=done)
    write_text(turn.path("report.md"), text)
    settle(turn)


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
