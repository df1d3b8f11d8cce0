from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Takopi


@pytest.fixture
def takopi(tmp_path: Path) -> Takopi:
    takopi = Takopi(tmp_path.resolve())
    takopi.write('[oneshot]\nbackend = "demo"\n')
    takopi.cwd = takopi.folder / "project"
    takopi.cwd.mkdir()
    return takopi


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


def test_plan_is_approved_skipped_or_left_on_a_terminal(takopi: Takopi) -> None:
    takopi("session", "new", "say-hello")
    takopi("session", "plan", "-m", "Hello")
    left = takopi.on_terminal("session", "execute", answers=[("(q)uit", "r\n"), ("(q)uit", "q\n")])
    assert left.code == 4
    assert "## Action Plan" in left.out
    assert not (takopi.cwd / "demo").exists()
    takopi.on_terminal("session", "execute", answers=[("(q)uit", "s\n"), ("message", "No.\n")])
    assert "turn 02 (pathfinder) waits for a plan" in takopi("session", "status").out
    takopi("session", "plan", "-m", "Again")
    done = takopi.on_terminal("session", "execute", answers=[("(q)uit", "a\n")])
    assert done.code == 0
    assert (takopi.cwd / "demo/hello-1.txt").exists()


def test_faulty_plan_is_planned_again_and_nothing_runs(takopi: Takopi) -> None:
    takopi("session", "new", "say-hello")
    takopi("session", "plan", "-m", "Hello")
    (takopi.cwd / "demo").mkdir()
    (takopi.cwd / "demo/hello-1.txt").write_text("there", encoding="utf-8")
    failed = takopi("session", "execute", "-y")
    assert failed.code == 1
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
        "error: there is no session here yet\n  begin one: session new NAME\n",
    )
