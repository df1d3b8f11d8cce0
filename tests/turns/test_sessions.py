from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused
from takopi.kit.proc import open_keeper
from takopi.turns import demo_planner, journal
from takopi.turns.actions import Bench, perform
from takopi.turns.agents import known_agents, read_prompt
from takopi.turns.following import settle
from takopi.turns.grammar import parse
from takopi.turns.layout import Session, Turn, find_turn, read_context
from takopi.turns.machine import Choice, everything
from takopi.turns.memos import read_memos
from takopi.turns.plan import (
    Action,
    Chat,
    Conclude,
    Create,
    Execute,
    Invoke,
    Memo,
    Plan,
    Prune,
    Read,
    Research,
)
from takopi.turns.render import render
from takopi.turns.service import (
    Invalid,
    Proposal,
    Rules,
    check,
    create_session,
    execute,
    plan_turn,
    replan,
    skip,
)

RULES = Rules()
ENVIRON = {"PATH": "/usr/bin:/bin"}


async def ask_demo(system: str, user: str) -> str:
    await trio.lowlevel.checkpoint()
    return demo_planner.plan(system, user)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_keeper(on_lost=lambda: None) as keeper:
        yield Bench(root=tmp_path, keeper=keeper, environ=ENVIRON, grace_s=0.2)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "a.txt").write_text("a\n", encoding="utf-8")
    return create_session(tmp_path, "try-it")


def put(turn: Turn, *actions: Action) -> Proposal:
    plan = Plan(title="T", rationale="Why.", actions=actions)
    turn.path("plan.md").write_text(render(plan), encoding="utf-8")
    found = check(turn, RULES)
    assert isinstance(found, Proposal), found
    return found


async def step(bench: Bench, turn: Turn, *actions: Action) -> Turn:
    """Carry out a plan whole, and give the next turn."""
    proposal = put(turn, *actions)
    await execute(proposal, bench, choice=everything(proposal.plan))
    return turn.session.latest()


def files(turn: Turn) -> set[str]:
    return {path.name for path in turn.folder.iterdir()}


async def test_demo_planner_drives_the_whole_loop(bench: Bench, session: Session) -> None:
    turn = session.latest()
    for number in (1, 2):
        await plan_turn(turn, "Hello there", ask=ask_demo, rules=RULES, environ=ENVIRON)
        proposal = check(turn, RULES)
        assert isinstance(proposal, Proposal)
        done = await execute(proposal, bench, choice=everything(proposal.plan))
        assert all(one.succeeded for one in done)
        text = (bench.root / f"demo/hello-{number}.txt").read_text(encoding="utf-8")
        assert text == "Hello there\n"
        turn = session.latest()
    assert turn.id == "03"
    assert files(session.turn("01")) == {
        "execution.jsonl",
        "input.md",
        "meta.yaml",
        "plan.md",
        "report.md",
        "system_prompt.xml",
        "turn.context",
    }


async def test_answer_of_the_model_is_kept_with_its_fences_corrected(session: Session) -> None:
    sound = render(Plan(title="T", rationale="Why.", actions=(Chat(text="Hi."),)))

    async def ask(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        return f"Here is the plan:\n\n```markdown\n{sound.replace('# T', '#T', 1)}```\n"

    turn = await plan_turn(session.latest(), "Hi", ask=ask, rules=RULES, environ=ENVIRON)
    assert turn.path("plan.md").read_text("utf-8") == sound
    assert isinstance(check(turn, RULES), Proposal)


async def test_read_and_prune_change_the_next_context_and_the_report_joins_it(
    bench: Bench, session: Session
) -> None:
    second = await step(bench, session.latest(), Read(path="a.txt"))
    report = f".teddy/{session.name}/01/report.md"
    assert read_context(second.path("turn.context")) == ("a.txt", report)
    third = await step(bench, second, Prune(path="a.txt"))
    assert read_context(third.path("turn.context")) == (report, report.replace("/01/", "/02/"))
    meta = third.meta()
    assert (meta.turn_id, meta.parent_turn_id, meta.caller_turn_id) == ("03", "02", None)


async def test_nested_invoke_and_conclude_come_back_to_each_caller(
    bench: Bench, session: Session
) -> None:
    root = bench.root
    second = await step(bench, session.latest(), Invoke(agent="Developer", handoff=("a.txt",)))
    assert read_context(second.path("turn.context")) == (
        "a.txt",
        f".teddy/{session.name}/01/report.md",
    )
    third = await step(bench, second, Invoke(agent="debugger"))
    assert third.path("system_prompt.xml").read_text("utf-8") == read_prompt(root, "debugger")
    fourth = await step(bench, third, Conclude(handoff=("a.txt",)))
    assert (fourth.meta().parent_turn_id, fourth.meta().caller_turn_id) == ("02", "01")
    assert fourth.path("system_prompt.xml").read_text("utf-8") == read_prompt(root, "developer")
    fifth = await step(bench, fourth, Conclude())
    assert (fifth.meta().parent_turn_id, fifth.meta().caller_turn_id) == ("01", None)
    assert fifth.path("system_prompt.xml").read_text("utf-8") == read_prompt(root, "pathfinder")


async def test_first_failure_stops_the_rest_and_only_success_counts(
    bench: Bench, session: Session
) -> None:
    fail = Execute(command="exit 3")
    second = await step(bench, session.latest(), fail, Read(path="a.txt"))
    report = session.turn("01").path("report.md").read_text("utf-8")
    assert "- **Overall Status:** FAILURE 🔴" in report
    assert "- **Outcomes:** 0 Succeeded / 1 Failed" in report
    assert "SKIPPED (skipped: an earlier action failed)" in report
    assert "a.txt" not in read_context(second.path("turn.context"))


async def test_action_that_was_not_approved_has_no_effect(bench: Bench, session: Session) -> None:
    proposal = put(session.latest(), Create(path="x", content=""), Create(path="y", content=""))
    await execute(proposal, bench, choice=Choice(actions=frozenset({1})))
    assert not (bench.root / "x").exists()
    assert (bench.root / "y").exists()


async def test_plan_that_changed_after_it_was_shown_is_refused(
    bench: Bench, session: Session
) -> None:
    proposal = put(session.latest(), Create(path="x", content=""))
    put(session.latest(), Create(path="z", content=""))
    with pytest.raises(Refused, match="changed since it was shown"):
        await execute(proposal, bench, choice=everything(proposal.plan))
    assert not (bench.root / "x").exists()


def test_skipped_plan_is_reported_and_the_next_turn_is_ready(session: Session) -> None:
    following = skip(put(session.latest(), Create(path="x", content="")), message="No.")
    assert following.id == "02"
    assert "SKIPPED 🟡" in session.turn("01").path("report.md").read_text("utf-8")


async def test_faulty_plan_is_replanned_at_most_three_times(session: Session) -> None:
    asked: list[str] = []
    faulty = render(Plan(title="Bad", rationale="", actions=(Read(path="no"),)))

    async def ask(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        asked.append(user)
        return faulty

    turn = session.latest()
    turn.path("plan.md").write_text(faulty, encoding="utf-8")
    for number in (2, 3, 4):
        found = check(turn, RULES)
        assert isinstance(found, Invalid)
        following = await replan(found, ask=ask, rules=RULES, environ=ENVIRON)
        assert following is not None
        assert following.id == f"{number:02d}"
        assert read_context(following.path("turn.context")) == ()
        turn = following
    found = check(turn, RULES)
    assert isinstance(found, Invalid)
    assert await replan(found, ask=ask, rules=RULES, environ=ENVIRON) is None
    assert len(asked) == 3
    assert asked[0].endswith(
        "The previous plan failed validation. Please review the errors and the original plan, "
        "then generate a corrected version.\n\n## Validation Errors:\n"
        "- `READ` on `no`: `no` does not exist, or is no file.\n\n"
        f"## Original Faulty Plan:\n````markdown\n{faulty}````\n\n"
    )


async def test_reported_turn_is_not_planned_again(bench: Bench, session: Session) -> None:
    first = session.latest()
    await step(bench, first, Chat(text="Hi."))
    await step(bench, session.latest(), Chat(text="Hi."))
    before = session.turn("02").path("plan.md").read_bytes()

    async def ask(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        raise AssertionError("nobody may be asked")

    with pytest.raises(Refused, match="turn 02 is reported already"):
        await plan_turn(first, "Again", ask=ask, rules=RULES, environ=ENVIRON)
    assert session.turn("02").path("plan.md").read_bytes() == before


async def test_memos_are_kept_that_were_checked_and_no_others(
    bench: Bench, session: Session
) -> None:
    memos = (Memo("+", "One."), Memo("+", "Two."))
    plan = Plan(title="T", rationale="", memos=memos, actions=(Execute(command="exit 1"),))
    turn = session.latest()
    turn.path("plan.md").write_text(render(plan), encoding="utf-8")
    proposal = check(turn, RULES)
    assert isinstance(proposal, Proposal)
    await execute(proposal, bench, choice=Choice(memos=frozenset({1}), actions=frozenset({0})))
    assert read_memos(bench.root) == ("Two.",)
    assert (bench.root / ".teddy/memos.yaml").read_text("utf-8") == "- Two.\n"
    report = turn.path("report.md").read_text("utf-8")
    assert "### Applied State Changes\n- `[+] Two.`\n" in report


async def test_changed_action_is_carried_out_as_changed_and_the_report_says_so(
    bench: Bench, session: Session
) -> None:
    turn = session.latest()
    proposal = put(turn, Create(path="x", content="theirs\n"))
    edits = {0: Create(path="y", content="mine\n")}
    await execute(proposal, bench, choice=Choice(actions=frozenset({0}), edits=edits))
    assert not (bench.root / "x").exists()
    report = turn.path("report.md").read_text("utf-8")
    assert "`CREATE`: y *modified\n" in report
    assert "+mine" in report
    assert "theirs" in turn.path("plan.md").read_text("utf-8")


async def test_changed_action_that_could_not_be_read_again_is_refused(
    bench: Bench, session: Session
) -> None:
    proposal = put(session.latest(), Execute(command="true"))
    edits = {0: Execute(command="")}
    with pytest.raises(Refused, match="cannot be noted down"):
        await execute(proposal, bench, choice=Choice(actions=frozenset({0}), edits=edits))
    assert not session.latest().has(journal.NAME)


async def test_research_asks_the_program_that_is_set_and_fails_without_one(bench: Bench) -> None:
    question = Research(queries=("what is it",))
    failed = await perform(question, bench)
    assert failed.reason == "no sessions.research_command is configured"
    told = await perform(question, replace(bench, research_command=("echo", "asked:")))
    assert (told.status, "asked: what is it\n" in told.details) == ("SUCCESS", True)


async def test_ledger_names_the_request_and_the_model(session: Session) -> None:
    rules = Rules(model="opus")
    turn = await plan_turn(session.latest(), "Hi", ask=ask_demo, rules=rules, environ=ENVIRON)
    assert (turn.meta().user_request, turn.meta().model) == ("Hi", "opus")


def test_next_turn_that_was_built_and_not_named_gets_its_name(session: Session) -> None:
    turn = session.latest()
    following = skip(put(turn, Chat(text="Hi.")), message="")
    hidden = following.folder.rename(following.folder.with_name(".02"))
    assert session.latest().id == "01"
    assert settle(turn).id == "02"
    assert not hidden.exists()


def test_turn_is_found_from_inside_and_by_the_name_of_its_session(session: Session) -> None:
    root = session.folder.parents[1]
    assert find_turn(root).folder == session.turn("01").folder
    assert find_turn(session.turn("01").folder).id == "01"
    assert find_turn(root, session="try-it").id == "01"
    (session.folder / "02-branch-01").mkdir()
    assert session.latest().id == "01"
    with pytest.raises(Refused):
        find_turn(root, session="other")
    with pytest.raises(Refused):
        create_session(root, "Not A Name")


def test_newest_session_is_the_one_that_was_begun_last(session: Session) -> None:
    root = session.folder.parents[1]
    for name in ("b", "a"):
        create_session(root, name)
    (session.folder / "note.txt").write_text("x", encoding="utf-8")
    assert find_turn(root).session.name.endswith("-a")
    damaged = create_session(root, "c").latest().path("meta.yaml")
    damaged.write_text("[", encoding="utf-8")
    assert find_turn(root).session.name.endswith("-a")


def test_four_agents_are_known_and_a_project_may_bring_its_own(tmp_path: Path) -> None:
    assert known_agents(tmp_path) == {"pathfinder", "architect", "developer", "debugger"}
    own = tmp_path / ".teddy/prompts"
    own.mkdir(parents=True)
    (own / "Developer.xml").write_text("mine", encoding="utf-8")
    assert read_prompt(tmp_path, "DEVELOPER") == "mine"
    assert "{{" not in read_prompt(tmp_path, "pathfinder")


def test_demo_plan_is_a_plan() -> None:
    assert isinstance(parse(demo_planner.plan("", "")), Plan)
