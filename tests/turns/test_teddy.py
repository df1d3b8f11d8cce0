"""`teddy` as it is installed: every verb, what it prints, and the code it ends with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command import Outcome, Takopi

FILES = {"input.md", "meta.yaml", "plan.md", "system_prompt.xml", "turn.context"}


class Teddy:
    def __init__(self, takopi: Takopi) -> None:
        self.takopi = takopi

    def __call__(self, *args: str, stdin: str = "") -> Outcome:
        environ = self.takopi.environ | {"PATH": str(self.takopi.tools)}
        return self.takopi.run("teddy", args, stdin=stdin, environ=environ)


@pytest.fixture
def takopi(tmp_path: Path) -> Takopi:
    takopi = Takopi(tmp_path.resolve(), is_warm=True)
    takopi.write('[oneshot]\nbackend = "demo"\n')
    takopi.cwd = takopi.folder / "project"
    takopi.cwd.mkdir()
    for tool in ("sh", "cat"):
        (takopi.tools / tool).symlink_to(f"/bin/{tool}")
    return takopi


@pytest.fixture
def teddy(takopi: Takopi) -> Teddy:
    return Teddy(takopi)


def test_session_goes_through_every_verb(takopi: Takopi, teddy: Teddy) -> None:
    made = teddy("new", "say-hello")
    folder = Path(made.out.strip())
    assert made.code == 0
    assert re.fullmatch(r"\d{8}-say-hello", folder.name)
    assert folder.parent == takopi.cwd / ".teddy"
    assert (folder / "session.context").read_bytes() == b""
    assert (folder / "01/system_prompt.xml").read_text("utf-8") == teddy("get-prompt").out

    takopi.cwd = folder / "01"
    written = teddy("context")
    assert (written.code, written.out.strip()) == (0, str(folder / "01/input.md"))
    assert (folder / "01/input.md").read_text("utf-8").startswith("# Agent Invocation Payload\n")

    planned = teddy("plan", "-m", "Hello")
    assert (planned.code, planned.out.strip()) == (0, str(folder / "01/plan.md"))
    assert {path.name for path in (folder / "01").iterdir()} == FILES

    done = teddy("execute", "-y", "plan.md")
    assert (done.code, done.out.strip()) == (0, str(folder / "01/report.md")), done.err
    assert (folder.parents[1] / "demo/hello-1.txt").read_text("utf-8") == "Hello\n"

    takopi.cwd = folder
    resumed = teddy("resume", "-m", "More")
    assert (resumed.code, resumed.out.strip()) == (0, str(folder / "02/plan.md"))
    again = teddy("resume", "-y")
    assert (again.code, again.out.strip()) == (0, str(folder / "02/report.md")), again.err
    assert teddy("status").out.endswith("turn 03 (pathfinder) waits for a plan\n")


def test_resume_goes_on_with_the_latest_turn_from_the_folder_of_any(
    takopi: Takopi, teddy: Teddy
) -> None:
    folder = Path(teddy("new", "say-hello").out.strip())
    for message in ("One", "Two"):
        assert teddy("resume", "-m", message).code == 0
        assert teddy("resume", "-y").code == 0
    takopi.cwd = folder / "01"
    resumed = teddy("resume", "-m", "Three")
    assert (resumed.code, resumed.out.strip()) == (0, str(folder / "03/plan.md")), resumed.err
    done = teddy("execute", "-y", "../03/plan.md")
    assert (done.code, done.out.strip()) == (0, str(folder / "03/report.md")), done.err


def test_message_for_a_turn_whose_plan_waits_is_refused(teddy: Teddy) -> None:
    folder = Path(teddy("new", "say-hello").out.strip())
    teddy("plan", "-m", "One")
    refused = teddy("resume", "-y", "-m", "Two")
    assert refused.code == 1
    assert refused.err == (
        "error: turn 01 has a plan that waits, and -m would not change it\n"
        "  leave -m out to carry it out, or have it planned anew: takopi session plan -m …\n"
    )
    assert not (folder / "01/report.md").exists()


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("new", "Not A Name"), 1, '"Not A Name" cannot name a session'),
        (("new",), 1, "Missing argument"),
        (("context",), 1, "there is no session here yet"),
        (("plan", "-m", "x"), 1, "there is no session here yet"),
        (("execute", "-y"), 1, "there is no session here yet"),
        (("execute", "other.md"), 1, "there is no session here yet"),
        (("resume",), 1, "there is no session here yet"),
        (("status",), 1, "there is no session here yet"),
        (("preprocess",), 2, "there is no clipboard"),
        (("preprocess", "none.md"), 2, "none.md"),
        (("get-prompt", "nobody"), 1, "there is no agent nobody"),
        (("branch",), 1, "No such command"),
    ],
)
def test_verb_that_cannot_be_done_says_so(
    teddy: Teddy, args: tuple[str, ...], code: int, told: str
) -> None:
    refused = teddy(*args)
    assert refused.code == code, refused
    assert told in refused.err
    assert not refused.out


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("new", "say-hello"), 1, "there is a session"),
        (("plan",), 1, "the turn needs a message"),
        (("execute", "-y"), 1, "turn 01 has no plan"),
        (("execute", "notes.md"), 1, "notes.md is not the plan of a turn"),
        (("resume",), 1, "the turn needs a message"),
        (("plan", "-m", "x", "--session", "other"), 1, "there is no session other here"),
    ],
)
def test_verb_that_comes_too_early_says_so(
    teddy: Teddy, args: tuple[str, ...], code: int, told: str
) -> None:
    teddy("new", "say-hello")
    refused = teddy(*args)
    assert refused.code == code, refused
    assert told in refused.err


def test_action_that_fails_is_code_1_and_nobody_to_ask_is_code_2(
    takopi: Takopi, teddy: Teddy
) -> None:
    folder = Path(teddy("new", "say-hello").out.strip())
    teddy("plan", "-m", "x")
    assert teddy("execute").code == 2
    assert not (folder / "01/report.md").exists()
    plan = folder / "01/plan.md"
    plan.write_text(plan.read_text("utf-8").replace("cat demo", "exit 3; cat demo"), "utf-8")
    failed = teddy("execute", "-y")
    assert (failed.code, failed.out.strip()) == (1, str(folder / "01/report.md"))
    assert "2. EXECUTE: FAILURE (exit code 3)" in failed.err


def test_plan_is_mended_in_place_or_from_stdin(takopi: Takopi, teddy: Teddy) -> None:
    path = takopi.cwd / "plan.md"
    path.write_text("#Title\n", encoding="utf-8")
    mended = teddy("preprocess", "plan.md")
    assert (mended.code, mended.out, path.read_text("utf-8")) == (0, "", "# Title\n")
    assert teddy("preprocess", "-", stdin="#Title\n").out == "# Title\n"
