"""What stands on the disk after a turn, file by file, whatever the turn has done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from takopi.kit.proc import open_keeper
from takopi.turns.actions import Bench
from takopi.turns.agents import read_prompt
from takopi.turns.layout import Session, Turn
from takopi.turns.machine import everything
from takopi.turns.plan import Action, Chat, Conclude, Create, Execute, Invoke, Plan, Prune, Read
from takopi.turns.render import render
from takopi.turns.service import Proposal, Rules, check, create_session, execute, skip

ENVIRON = {"PATH": "/usr/bin:/bin"}
NEW = {"meta.yaml", "system_prompt.xml", "turn.context"}
DONE = NEW | {"execution.jsonl", "plan.md", "report.md"}


@dataclass(frozen=True)
class Next:
    """The turn that follows: its ledger, its context and whose prompt it has."""

    turn_id: str
    parent: str
    caller: str | None
    agent: str
    context: tuple[str, ...]


Turns = tuple[tuple[Action, ...], ...]
TABLE: dict[str, tuple[Turns, Next]] = {
    "READ adds a file, and the report": (
        ((Read(path="./b.txt"),),),
        Next("02", "01", None, "pathfinder", ("a.txt", "b.txt", "<01>")),
    ),
    "READ of what is there already adds nothing": (
        ((Read(path="a.txt"),),),
        Next("02", "01", None, "pathfinder", ("a.txt", "<01>")),
    ),
    "PRUNE takes a file out": (
        ((Prune(path="a.txt"),),),
        Next("02", "01", None, "pathfinder", ("<01>",)),
    ),
    "other actions change the project only": (
        ((Create(path="c.txt", content=""), Execute(command="true"), Chat(text="Hi.")),),
        Next("02", "01", None, "pathfinder", ("a.txt", "<01>")),
    ),
    "INVOKE hands over to an agent with its files": (
        ((Read(path="b.txt"), Invoke(agent="Developer", handoff=("b.txt",))),),
        Next("02", "01", "01", "developer", ("b.txt", "<01>")),
    ),
    "an invoked agent goes on": (
        ((Invoke(agent="developer"),), (Read(path="b.txt"),)),
        Next("03", "02", "01", "developer", ("<01>", "b.txt", "<02>")),
    ),
    "CONCLUDE comes back to the caller with its context": (
        ((Invoke(agent="developer"),), (Conclude(handoff=("b.txt",)),)),
        Next("03", "01", None, "pathfinder", ("a.txt", "b.txt", "<02>")),
    ),
    "nested INVOKE names the inner caller": (
        ((Invoke(agent="developer", handoff=("b.txt",)),), (Invoke(agent="debugger"),)),
        Next("03", "02", "02", "debugger", ("<02>",)),
    ),
    "nested CONCLUDE comes back to the inner caller, who still has the outer": (
        (
            (Invoke(agent="developer", handoff=("b.txt",)),),
            (Invoke(agent="debugger"),),
            (Conclude(),),
        ),
        Next("04", "02", "01", "developer", ("b.txt", "<01>", "<03>")),
    ),
    "a failure keeps what had succeeded, and nothing of the rest": (
        ((Read(path="b.txt"), Execute(command="false"), Prune(path="a.txt")),),
        Next("02", "01", None, "pathfinder", ("a.txt", "b.txt", "<01>")),
    ),
    "a failure before an INVOKE hands nothing over": (
        ((Execute(command="false"), Invoke(agent="developer")),),
        Next("02", "01", None, "pathfinder", ("a.txt", "<01>")),
    ),
}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_keeper(on_lost=lambda: None) as keeper:
        yield Bench(root=tmp_path, keeper=keeper, environ=ENVIRON, grace_s=0.2)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).touch()
    session = create_session(tmp_path, "try-it")
    session.latest().path("turn.context").write_text("a.txt\n", encoding="utf-8")
    return session


def propose(turn: Turn, *actions: Action) -> Proposal:
    plan = Plan(title="T", rationale="Why.", actions=actions)
    turn.path("plan.md").write_text(render(plan), encoding="utf-8")
    found = check(turn, Rules())
    assert isinstance(found, Proposal), found
    return found


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def assert_is(turn: Turn, expected: Next) -> None:
    assert files(turn.folder) == NEW
    meta = msgspec.yaml.decode(turn.path("meta.yaml").read_bytes())
    assert meta.pop("created").endswith("+00:00")
    assert meta == {
        "turn_id": expected.turn_id,
        "parent_turn_id": expected.parent,
        "caller_turn_id": expected.caller,
        "agent": expected.agent,
        "user_request": "",
        "model": "",
        "replan_of": None,
    }
    reports = {f"<{number:02d}>": turn.session.turn(f"{number:02d}") for number in range(1, 5)}
    context = "".join(
        f"{reports[one].relative('report.md') if one in reports else one}\n"
        for one in expected.context
    )
    assert turn.path("turn.context").read_text("utf-8") == context
    prompt = turn.path("system_prompt.xml").read_text("utf-8")
    assert prompt == read_prompt(turn.root, expected.agent)


@pytest.mark.parametrize("name", TABLE)
async def test_next_turn_has_exactly_this(bench: Bench, session: Session, name: str) -> None:
    turns, expected = TABLE[name]
    for actions in turns:
        proposal = propose(session.latest(), *actions)
        await execute(proposal, bench, choice=everything(proposal.plan))
    *done, latest = session.turns()
    assert [files(turn.folder) for turn in done] == [DONE] * len(turns)
    assert files(session.folder) == {"session.context", *(turn.id for turn in (*done, latest))}
    assert_is(latest, expected)


def test_skipped_turn_has_a_report_and_no_journal(session: Session) -> None:
    turn = session.latest()
    skip(propose(turn, Read(path="b.txt"), Invoke(agent="developer")), message="")
    assert files(turn.folder) == NEW | {"plan.md", "report.md"}
    assert_is(session.latest(), Next("02", "01", None, "pathfinder", ("a.txt", "<01>")))


def test_message_of_a_skip_is_what_the_next_turn_is_asked_for(session: Session) -> None:
    following = skip(propose(session.latest(), Chat(text="Hi.")), message="Other.")
    assert following.meta().user_request == "Other."


def test_plan_that_was_only_looked_at_leaves_everything_as_it_was(session: Session) -> None:
    turn = session.latest()
    propose(turn, Read(path="b.txt"))
    assert files(session.folder) == {"session.context", "01"}
    assert files(turn.folder) == NEW | {"plan.md"}
    assert turn.path("turn.context").read_text("utf-8") == "a.txt\n"
