from __future__ import annotations

from pathlib import Path

import pytest

from takopi.turns import journal
from takopi.turns.journal import Line
from takopi.turns.layout import Turn, find_turn
from takopi.turns.machine import everything
from takopi.turns.outcome import Outcome
from takopi.turns.plan import Create, Edit, Execute, Memo, Plan, Read, Research, Swap
from takopi.turns.render import render
from tests.cli.command import Takopi

END = "(q)uit \u203a"
BACK = "to go back \u203a"
PLAN = Plan(
    title="Bootstrap",
    rationale="Why.",
    memos=(Memo("+", "Use core.py.", "Establish."),),
    actions=(
        Create(path="new.py", content="new = 1\n"),
        Edit(path="old.py", swaps=(Swap("old = 1", "older = 1"),)),
        Execute(command="echo 1 >> log"),
        Execute(command="echo 2 >> log"),
    ),
)


@pytest.fixture
def takopi(tmp_path: Path) -> Takopi:
    takopi = Takopi(tmp_path.resolve(), is_warm=True)
    takopi.write('[oneshot]\nbackend = "demo"\n')
    takopi.cwd = takopi.folder / "project"
    takopi.cwd.mkdir()
    return takopi


def planned(takopi: Takopi, plan: Plan) -> Turn:
    """A session whose first turn has this plan."""
    takopi("session", "new", "try-it")
    (takopi.cwd / "old.py").write_text("old = 1\n", encoding="utf-8")
    turn = find_turn(takopi.cwd)
    turn.path("turn.context").write_text("old.py\n", encoding="utf-8")
    turn.path("plan.md").write_text(render(plan), encoding="utf-8")
    return turn


def test_session_runs_from_new_to_the_next_turn_without_a_model(takopi: Takopi) -> None:
    made = takopi("session", "new", "say-hello")
    assert made.code == 0, made.err
    folder = Path(made.out.strip())
    assert takopi("session", "context").out.strip() == str(folder / "01/input.md")
    planned = takopi("session", "plan", "-m", "Hello there")
    assert (planned.code, planned.out.strip()) == (0, str(folder / "01/plan.md"))
    assert takopi("session", "execute").code == 2
    assert not (takopi.cwd / "demo").exists()
    done = takopi("session", "execute", "-y")
    assert (done.code, done.out.strip()) == (0, str(folder / "01/report.md")), done.err
    assert (takopi.cwd / "demo/hello-1.txt").read_text("utf-8") == "Hello there\n"
    assert takopi("session", "resume", "-m", "More").out.strip() == str(folder / "02/plan.md")
    assert "turn 02 (pathfinder) is planned" in takopi("session", "status").out


def test_plan_is_approved_or_left_on_a_terminal(takopi: Takopi) -> None:
    takopi("session", "new", "say-hello")
    takopi("session", "plan", "-m", "Hello")
    left = takopi.on_terminal("session", "execute", answers=[(END, "r\n"), (END, "q\n")])
    assert left.code == 4
    assert "## Action Plan" in left.out
    assert not (takopi.cwd / "demo").exists()
    done = takopi.on_terminal("session", "execute", answers=[(END, "a\n")])
    assert done.code == 0
    assert (takopi.cwd / "demo/hello-1.txt").exists()


def test_plan_is_summed_up_and_asked_about_in_these_words(takopi: Takopi) -> None:
    turn = planned(takopi, PLAN)
    left = takopi.on_terminal("session", "execute", answers=[(END, "q\n")])
    rule = "-" * 68
    assert left.out.replace("\r\n", "\n").startswith(
        f"""▶ Reviewing Plan: "Bootstrap"
{rule}

 memos.yaml:
  [+] ADD:    Use core.py. # Establish.

 Action Plan:
  - CREATE: 1 file
  - EDIT:   1 file
  - EXECUTE: 2 commands

{rule}
Execute this plan? (a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit \u203a"""
    )
    assert not turn.has("report.md")


def test_skipped_plan_is_reported_and_the_next_is_made_of_the_message(takopi: Takopi) -> None:
    turn = planned(takopi, PLAN)
    takopi.on_terminal("session", "execute", answers=[(END, "s\n"), ("message", "Greet me.\n")])
    assert "SKIPPED 🟡" in turn.path("report.md").read_text("utf-8")
    following = turn.next()
    assert following.meta().user_request == "Greet me."
    assert following.meta().model == "demo"
    assert "Greet me." in following.path("plan.md").read_text("utf-8")
    assert not (takopi.cwd / "new.py").exists()


def test_interrupted_turn_is_shown_and_goes_on_or_is_reported(takopi: Takopi) -> None:
    turn = planned(takopi, PLAN)
    journal.append(turn, journal.opening(render(PLAN), everything(PLAN), started="then"))
    journal.append(turn, Line(begin=0))
    journal.append(turn, Line(end=0, outcome=Outcome(status="SUCCESS")))
    journal.append(turn, Line(begin=2))
    assert "was interrupted" in takopi("session", "status").out
    assert takopi("session", "resume", "-y").code == 2
    left = takopi.on_terminal("session", "resume", answers=[("(q)uit", "q\n")])
    assert left.code == 4
    assert "CREATE: new.py: ran, SUCCESS" in left.out
    assert "EXECUTE: echo 1 >> log: may have run, and is not run again" in left.out
    assert "EXECUTE: echo 2 >> log: did not run" in left.out
    assert "(f) Report as failed / (c)ontinue after the last finished action" in left.out
    assert not turn.has("report.md")
    assert takopi.on_terminal("session", "resume", answers=[("(q)uit", "c\n")]).code == 1
    assert (takopi.cwd / "log").read_text("utf-8") == "2\n"
    assert turn.next().has("meta.yaml")


def test_interrupted_turn_that_is_reported_as_failed_is_code_1(takopi: Takopi) -> None:
    turn = planned(takopi, PLAN)
    journal.append(turn, journal.opening(render(PLAN), everything(PLAN), started="then"))
    assert takopi.on_terminal("session", "resume", answers=[("(q)uit", "f\n")]).code == 1
    assert "FAILURE 🔴" in turn.path("report.md").read_text("utf-8")


def test_action_that_leaves_nothing_behind_may_be_run_again(takopi: Takopi) -> None:
    plan = Plan(title="T", rationale="Why.", actions=(Read(path="old.py"),))
    turn = planned(takopi, plan)
    journal.append(turn, journal.opening(render(plan), everything(plan), started="then"))
    journal.append(turn, Line(begin=0))
    done = takopi.on_terminal("session", "resume", answers=[("(q)uit", "c\n")])
    assert "READ:   old.py: may have run, and is run again to continue" in done.out
    assert "1. READ: SUCCESS" in done.out


def test_claude_plans_with_the_key_only_if_it_may_bill_it(takopi: Takopi) -> None:
    claude = takopi.tools / "claude"
    claude.write_text(
        "#!/bin/sh\ncat > /dev/null\n"
        """printf '{"is_error":false,"result":"# Key %s"}' "$ANTHROPIC_API_KEY"\n""",
        encoding="utf-8",
    )
    claude.chmod(0o755)
    takopi("session", "new", "say-hello")
    for billed, seen in (("false", "# Key"), ("true", "# Key k")):
        takopi.write(
            f'[oneshot]\nbackend = "cli"\nmodel = "opus"\n[claude]\nuse_api_billing = {billed}\n'
        )
        done = takopi("session", "plan", "-m", "x", environ={"ANTHROPIC_API_KEY": "k"})
        assert done.code == 0, done.err
        assert Path(done.out.strip()).read_text("utf-8").strip() == seen
    assert find_turn(takopi.cwd).meta().model == "opus"


def test_sessions_table_says_how_often_an_agent_corrects_itself(takopi: Takopi) -> None:
    takopi.write('[oneshot]\nbackend = "demo"\n[sessions]\nmax_replans = 0\n')
    turn = planned(takopi, Plan(title="T", rationale="", actions=(Read(path="no"),)))
    failed = takopi("session", "execute", "-y")
    assert failed.code == 3
    assert failed.err.endswith(
        "error: the plan failed its checks\n  say it differently: takopi session plan -m …\n"
    )
    assert not turn.next().has("plan.md")


def test_research_runs_the_program_of_the_config(takopi: Takopi) -> None:
    takopi.write('[oneshot]\nbackend = "demo"\n[sessions]\nresearch_command = ["echo", "re:"]\n')
    turn = planned(takopi, Plan(title="T", rationale="", actions=(Research(queries=("what",)),)))
    assert takopi("session", "execute", "-y").code == 0
    assert "\nre: what\n" in turn.path("report.md").read_text("utf-8")


def test_plan_on_the_clipboard_is_mended_and_copied_back(takopi: Takopi) -> None:
    board = takopi.folder / "board"
    for name, script in (("wl-paste", f"cat {board}"), ("wl-copy", f"cat > {board}")):
        (takopi.tools / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (takopi.tools / name).chmod(0o755)
    board.write_text("#Title\n", encoding="utf-8")
    assert takopi("session", "preprocess", "--no-copy").out == "# Title\n"
    assert board.read_text("utf-8") == "#Title\n"
    assert takopi("session", "preprocess").out == "# Title\n"
    assert board.read_text("utf-8") == "# Title\n"
    prompt = takopi("session", "get-prompt", "--no-copy").out
    assert board.read_text("utf-8") == "# Title\n"
    assert takopi("session", "get-prompt").out == prompt
    assert board.read_text("utf-8") == prompt


def test_without_a_clipboard_the_other_ways_are_named(takopi: Takopi) -> None:
    only = takopi.folder / "only"
    only.mkdir()
    refused = takopi("session", "preprocess", environ={"PATH": str(only)})
    assert refused.code == 2
    assert "there is no clipboard" in refused.err
    assert "name a file, or - for stdin" in refused.err


def test_faulty_plan_is_planned_again_and_nothing_runs(takopi: Takopi) -> None:
    takopi("session", "new", "say-hello")
    takopi("session", "plan", "-m", "Hello")
    (takopi.cwd / "demo").mkdir()
    (takopi.cwd / "demo/hello-1.txt").write_text("there", encoding="utf-8")
    failed = takopi("session", "execute", "-y")
    assert failed.code == 3
    assert "`CREATE` on `demo/hello-1.txt`: the file exists already." in failed.err
    assert "turn 02 (pathfinder) is planned" in takopi("session", "status").out


def test_fences_are_mended_in_place_or_from_stdin(takopi: Takopi) -> None:
    broken, mended = "\ufeff#Title\n", "# Title\n"
    path = takopi.cwd / "plan.md"
    path.write_text(broken, encoding="utf-8")
    assert takopi("session", "preprocess", "plan.md").code == 0
    assert path.read_text("utf-8") == mended
    assert takopi("session", "preprocess", "-", stdin=broken).out == mended


def test_prompt_of_an_agent_is_printed_and_an_unknown_one_refused(takopi: Takopi) -> None:
    assert '<agent name="developer">' in takopi("session", "get-prompt", "Developer").out
    refused = takopi("session", "get-prompt", "nobody")
    assert refused.code == 1
    assert "there is no agent nobody" in refused.err


def test_without_a_session_the_way_out_is_named(takopi: Takopi) -> None:
    refused = takopi("session", "plan", "-m", "x")
    assert (refused.code, refused.err) == (
        1,
        "error: there is no session here yet\n  begin one: takopi session new NAME\n",
    )
