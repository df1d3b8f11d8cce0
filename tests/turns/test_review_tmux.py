"""The review of a plan as a person sees it: the real command in a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from takopi.turns.layout import Turn, find_turn
from takopi.turns.memos import read_memos
from takopi.turns.plan import Create, Edit, Execute, Memo, Plan, Swap
from takopi.turns.render import render
from tests.cli.command import BIN, Takopi
from tests.turns.terminal import Terminal, until

TIER_1 = "(q)uit \u203a"
TIER_2 = "[q] to go back"
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
    takopi = Takopi(tmp_path.resolve())
    takopi.write('[oneshot]\nbackend = "demo"\n')
    takopi.cwd = takopi.folder / "project"
    takopi.cwd.mkdir()
    return takopi


@pytest.fixture
def turn(takopi: Takopi) -> Turn:
    takopi("session", "new", "try-it")
    (takopi.cwd / "old.py").write_text("old = 1\n", encoding="utf-8")
    turn = find_turn(takopi.cwd)
    turn.path("turn.context").write_text("old.py\n", encoding="utf-8")
    turn.path("plan.md").write_text(render(PLAN), encoding="utf-8")
    return turn


def execute(takopi: Takopi, *, columns: int = 90, lines: int = 24) -> Terminal:
    argv = (str(BIN / "takopi"), "session", "execute")
    return Terminal(argv, cwd=takopi.cwd, environ=takopi.environ, columns=columns, lines=lines)


def modify(terminal: Terminal) -> None:
    terminal.until(TIER_1)
    terminal.press("m", "Enter")
    terminal.until("- Action Plan")


def test_only_what_is_checked_is_carried_out(takopi: Takopi, turn: Turn) -> None:
    with execute(takopi) as terminal:
        modify(terminal)
        terminal.press("Space", "Down", "Down", "Down", "Enter", "Down", "Down", "Space")
        screen = terminal.until("2 of 5 checked")
        assert "- Memos\n└─ [ ] [+] ADD:    Use core.py. # Establish.\n" in screen
        assert (
            "- Action Plan\n├─ [✓] CREATE: new.py\n├─ [ ] EDIT:   old.py\n"
            "├─ [✓] EXECUTE: echo 1 >> log\n└─ [ ] EXECUTE: echo 2 >> log\n"
        ) in screen
        terminal.press("s")
        assert terminal.code() == 0
    assert (takopi.cwd / "new.py").read_text("utf-8") == "new = 1\n"
    assert (takopi.cwd / "old.py").read_text("utf-8") == "old = 1\n"
    assert (takopi.cwd / "log").read_text("utf-8") == "1\n"
    assert read_memos(takopi.cwd) == ()
    assert "4 Total / 2 Approved / 2 Skipped" in turn.path("report.md").read_text("utf-8")


def test_changed_actions_are_carried_out_and_their_diffs_reported(
    takopi: Takopi, turn: Turn
) -> None:
    vi = takopi.tools / "vi"
    vi.write_text('#!/bin/sh\necho this is vi\nread number\nsed -i s/1/$number/ "$2"\n', "utf-8")
    vi.chmod(0o755)
    (takopi.cwd / ".teddy/config.yaml").write_text("preview_command: vi --ro\n", "utf-8")
    with execute(takopi) as terminal:
        modify(terminal)
        terminal.press("Down", "Down", "p")
        terminal.until("this is vi")
        terminal.press("7", "Enter")
        terminal.until("File path: [new.py]")
        terminal.write("x")
        terminal.press("Enter")
        terminal.until("saved the file content? (y/n)")
        terminal.press("y")
        terminal.until("[✓] CREATE: new.pyx *modified")
        terminal.press("Down", "p")
        terminal.until("this is vi")
        terminal.press("9", "Enter")
        terminal.until("saved the file? (y/n)")
        terminal.press("y")
        terminal.until("[✓] EDIT:   old.py *modified")
        terminal.press("Down", "p")
        terminal.until("(e)dit or (c)lose")
        terminal.press("e")
        terminal.until("New content")
        terminal.write(" # mine")
        terminal.press("Enter")
        terminal.until("echo 1 >> log # mine *modified")
        terminal.press("s")
        assert terminal.code() == 0
    assert not (takopi.cwd / "new.py").exists()
    assert (takopi.cwd / "new.pyx").read_text("utf-8") == "new = 7\n"
    assert (takopi.cwd / "old.py").read_text("utf-8") == "older = 9\n"
    report = turn.path("report.md").read_text("utf-8")
    assert report.count("*modified") == 3
    assert "-old = 1\n+older = 9\n" in report
    assert "+new = 7\n" in report
    assert turn.path("plan.md").read_text("utf-8") == render(PLAN)


def test_whole_plan_is_looked_at_in_a_copy(takopi: Takopi, turn: Turn) -> None:
    less = takopi.tools / "less"
    less.write_text(
        '#!/bin/sh\nchmod u+w "$1"; echo lost >> "$1"; echo this is less; read x\n', "utf-8"
    )
    less.chmod(0o755)
    (takopi.cwd / ".teddy/config.yaml").write_text("preview_command: less\n", "utf-8")
    with execute(takopi) as terminal:
        terminal.until(TIER_1)
        terminal.press("r", "Enter")
        terminal.until("this is less")
        terminal.press("Enter")
        terminal.until("this is less\n\nExecute this plan?")
        terminal.press("q", "Enter")
        assert terminal.code() == 4
    assert turn.path("plan.md").read_text("utf-8") == render(PLAN)


def test_editor_in_a_window_cannot_spoil_the_screen(takopi: Takopi, turn: Turn) -> None:
    window = takopi.tools / "window"
    go, done = takopi.folder / "go", takopi.folder / "done"
    wait = f"while ! test -e {go}; do sleep 0.02; done"
    spoil = "yes spoilt | head -9; yes spoilt | head -9 >&2; (yes spoilt | head -9 > /dev/tty)"
    window.write_text(f"#!/bin/sh\n{wait}\n{spoil}\n: > {done}\n", encoding="utf-8")
    window.chmod(0o755)
    (takopi.cwd / ".teddy/config.yaml").write_text("preview_command: window\n", "utf-8")
    with execute(takopi) as terminal:
        modify(terminal)
        terminal.press("Down", "Down", "Down", "p")
        terminal.until("saved the file? (y/n)")
        go.touch()
        until(done.exists)
        terminal.press("n")
        assert "spoilt" not in terminal.until("Save it, then press y.")
        terminal.press("C-c")
        assert terminal.code() == 4


def test_going_back_asks_again_and_ctrl_c_ends_it(takopi: Takopi, turn: Turn) -> None:
    with execute(takopi) as terminal:
        modify(terminal)
        terminal.press("a")
        terminal.until("0 of 5 checked")
        terminal.press("q")
        terminal.until(TIER_1)
        modify(terminal)
        terminal.until("5 of 5 checked")
        terminal.press("C-c")
        assert terminal.code() == 4
        assert "stopped" in terminal.screen()
    assert not turn.has("report.md")
    assert not (takopi.cwd / "new.py").exists()


def test_terminal_may_be_tiny_and_grow(takopi: Takopi, turn: Turn) -> None:
    with execute(takopi, columns=24, lines=6) as terminal:
        terminal.until("\u203a")
        terminal.press("m", "Enter")
        terminal.until("- Action Plan")
        terminal.tmux("resize-window", "-x", "200", "-y", "50")
        terminal.until("5 of 5 checked, [q] to go back")
        terminal.press("q")
        terminal.until(TIER_1)
        terminal.press("q", "Enter")
        assert terminal.code() == 4


def test_terminal_that_cannot_move_its_cursor_is_told(takopi: Takopi, turn: Turn) -> None:
    takopi.environ["TERM"] = "dumb"
    told = "This terminal cannot show a checklist: TERM is dumb."
    answers = [(TIER_1, "m\n"), (told, ""), (TIER_1, "q\n")]
    assert takopi.on_terminal("session", "execute", answers=answers).code == 4
