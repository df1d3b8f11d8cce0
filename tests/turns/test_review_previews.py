"""Looking at an action, and changing it, with editors that are real programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import TextArea

from takopi.cli.review_tui import CREATING, EDITING
from takopi.turns.machine import Choice, everything
from takopi.turns.plan import (
    Action,
    Chat,
    Create,
    Edit,
    Execute,
    Plan,
    Prune,
    Read,
    Research,
    Swap,
)
from tests.turns.checklist import (
    ALL,
    PLAN,
    Drive,
    choose,
    editor,
    tree,
    until,
    until_closed,
    until_words,
    with_actions,
    words,
)


def test_new_file_is_saved_as_the_person_says(root: Path) -> None:
    command, done = editor(root, 'sed -i s/1/9/ "$1"')

    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "p")
        await until_words(pilot, "File path: [src/new.py]")
        assert words(pilot).startswith(
            "Your editor has been opened to preview the new file's content. "
            "You may edit it directly in this preview.\n\nFile path: [src/new.py]\n"
            "Press Enter to confirm, or type a new path \u203a"
        )
        await pilot.press("end", *["backspace"] * 6, *"other.py", "enter")
        question = "Have you finished editing and saved the file content? (y/n) \u203a"
        await until_words(pilot, question)
        await until(pilot, done.exists)
        await pilot.press("y")
        await until_closed(pilot)
        assert tree(pilot)[3] == "[✓] CREATE: src/other.py *modified"
        await pilot.press("s")

    changed = Create(path="src/other.py", content="new = 9\n")
    assert CREATING.startswith("Your editor has been opened")
    expected = Choice(memos=ALL.memos, actions=ALL.actions, edits={0: changed})
    assert choose(root, PLAN, script, editor=command) == expected


@pytest.mark.parametrize(
    ("typed", "told"),
    [("/../../x", "The path leaves the project."), ("/x", "The file exists already.")],
)
def test_path_where_no_file_can_be_made_is_not_taken(root: Path, typed: str, told: str) -> None:
    (root / "src/new.py").mkdir(parents=True)
    (root / "src/new.py/x").touch()
    command, _ = editor(root, "")

    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "p")
        await until_words(pilot, "File path:")
        await pilot.press("end", *typed, "enter")
        await until_words(pilot, told)
        await pilot.press("escape")
        await until_closed(pilot)
        await pilot.press("s")

    assert choose(root, PLAN, script, editor=command) == ALL


def test_edit_ends_as_the_person_has_saved_it(root: Path) -> None:
    command, done = editor(root, 'cp "$1" seen; sed -i s/1/9/ "$1"')

    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "down", "p")
        await until_words(pilot, "Editing:")
        assert words(pilot).startswith(
            "Editing: [old.py]\n\n"
            "Your editor has been opened to preview the proposed changes. You may edit the file "
            "directly in this preview to make final adjustments.\n\n"
            "Have you finished editing and saved the file? (y/n) \u203a"
        )
        await pilot.press("n")
        await until_words(pilot, "Save it, then press y.")
        await until(pilot, done.exists)
        await pilot.press("y")
        await until_closed(pilot)
        assert tree(pilot)[4] == "[✓] EDIT:   old.py *modified"
        await pilot.press("s")

    changed = Edit(path="old.py", swaps=(Swap("old = 1\n", "older = 9\n"),))
    assert EDITING.startswith("Your editor has been opened")
    choice = choose(root, PLAN, script, editor=f"cd {root}; {command}")
    assert (root / "seen").read_text("utf-8") == "older = 1\n"
    assert choice == Choice(memos=ALL.memos, actions=ALL.actions, edits={1: changed})


def test_edit_that_was_only_looked_at_is_no_change(root: Path) -> None:
    command, done = editor(root, "")

    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "down", "p")
        await until_words(pilot, "Editing:")
        await until(pilot, done.exists)
        await pilot.press("y")
        await until_closed(pilot)
        await pilot.press("s")

    assert choose(root, PLAN, script, editor=command) == ALL


def test_edit_of_a_file_that_the_plan_makes_starts_from_that_file(root: Path) -> None:
    plan = with_actions(
        Create(path="a", content="one\n"),
        Edit(path="a", swaps=(Swap("one", "two"),)),
        Edit(path="./a", swaps=(Swap("two", "three"),)),
    )
    command, done = editor(root, 'cp "$1" seen')

    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "p")
        await until_words(pilot, "Editing:")
        await until(pilot, done.exists)
        await pilot.press("escape")
        await until_closed(pilot)
        await pilot.press("s")

    assert choose(root, plan, script, editor=f"cd {root}; {command}") == everything(plan)
    assert (root / "seen").read_text("utf-8") == "three\n"


def test_command_is_shown_and_changed_on_its_line(root: Path) -> None:
    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "down", "down", "p")
        await until_words(pilot, "poetry lock\n(e)dit or (c)lose \u203a")
        await pilot.press("e")
        await until_words(pilot, "New content \u203a")
        await pilot.press("end", *" -v", "enter")
        await until_closed(pilot)
        assert tree(pilot)[5] == "[✓] EXECUTE: poetry lock -v *modified"
        await pilot.press("p")
        await until_words(pilot, "poetry lock -v")
        await pilot.press("c")
        await until_closed(pilot)
        await pilot.press("s")

    choice = choose(root, PLAN, script)
    assert choice is not None
    assert choice.edits == {2: Execute(command="poetry lock -v")}


@pytest.mark.parametrize(("button", "kept"), [(("tab", "enter"), True), (("escape",), False)])
def test_command_of_several_lines_is_changed_in_a_field(
    root: Path, button: tuple[str, ...], kept: bool
) -> None:
    plan = with_actions(Execute(command="one\ntwo"))

    async def script(pilot: Drive) -> None:
        await pilot.press("p")
        await until_words(pilot, "(e)dit or (c)lose")
        await pilot.press("e")
        await until(pilot, lambda: bool(pilot.app.screen.query(TextArea)))
        await pilot.press("down", "end", "enter", *"three", *button)
        await until_closed(pilot)
        await pilot.press("s")

    choice = choose(root, plan, script)
    assert choice is not None
    assert choice.edits == ({0: Execute(command="one\ntwo\nthree")} if kept else {})


def test_each_query_and_a_message_can_be_changed(root: Path) -> None:
    plan = with_actions(Research(queries=("who", "what")), Chat(text="Hello."))

    async def change(pilot: Drive, shown: str, typed: str) -> None:
        await until_words(pilot, f"{shown}\n(e)dit or (c)lose \u203a")
        await pilot.press("e")
        await until_words(pilot, "New content \u203a")
        await pilot.press("end", *typed, "enter")

    async def script(pilot: Drive) -> None:
        await pilot.press("p")
        await until_words(pilot, "who\n(e)dit")
        await pilot.press("c")
        await change(pilot, "what", " now")
        await until_closed(pilot)
        await pilot.press("down", "p")
        await change(pilot, "Hello.", " You.")
        await until_closed(pilot)
        await pilot.press("s")

    choice = choose(root, plan, script)
    assert choice is not None
    assert choice.edits == {0: Research(queries=("who", "what now")), 1: Chat(text="Hello. You.")}


@pytest.mark.parametrize("command", ["echo \x1b[2J", "echo\n\x1b[2J", "echo \x9b2J"])
def test_words_that_a_terminal_obeys_are_shown_without_and_left_alone(
    root: Path, command: str
) -> None:
    plan = with_actions(Execute(command=command))

    async def script(pilot: Drive) -> None:
        await pilot.press("p")
        await until_words(pilot, "EXECUTE, with characters that have no shape\necho")
        assert "(e)dit" not in words(pilot)
        assert not set("\x1b\x9b") & set(words(pilot))
        await pilot.press("e", "c")
        await until_closed(pilot)
        await pilot.press("s")

    assert choose(root, plan, script) == everything(plan)


def test_change_that_would_read_back_differently_is_not_taken(root: Path) -> None:
    plan = with_actions(Chat(text="Hello\nyou."))

    async def script(pilot: Drive) -> None:
        await pilot.press("p")
        await until_words(pilot, "(e)dit or (c)lose")
        await pilot.press("e")
        await until(pilot, lambda: bool(pilot.app.screen.query(TextArea)))
        await pilot.press("down", "end", "enter", "enter", *"### `CONCLUDE`", "tab", "enter")
        await until_closed(pilot)
        await until(pilot, lambda: bool(list(pilot.app.screen.query("Toast"))))
        await pilot.press("s")

    assert choose(root, plan, script) == everything(plan)


@pytest.mark.parametrize("action", [Read(path="old.py"), Prune(path="old.py")])
def test_resource_is_shown_and_cannot_be_changed(root: Path, action: Action) -> None:
    plan = with_actions(action)
    (root / "old.py").write_bytes(b"a\x1b[2Jb [red]c[/red]\n")

    async def script(pilot: Drive) -> None:
        await pilot.press("p")
        await until_words(pilot, "old.py\na�[2Jb [red]c[/red]\n(c)lose \u203a")
        await pilot.press("e")
        assert len(pilot.app.screen_stack) == 2
        await pilot.press("c")
        await until_closed(pilot)
        await pilot.press("s")

    assert choose(root, plan, script) == everything(plan)


def test_resource_that_is_not_there_is_told(root: Path) -> None:
    async def script(pilot: Drive) -> None:
        await pilot.press("p")
        await until_words(pilot, "It cannot be read.")
        await pilot.press("escape", "q")

    assert choose(root, with_actions(Prune(path="gone")), script) is None


def test_without_an_editor_the_content_and_the_diff_are_shown_here(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(root))

    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "p")
        await until_words(pilot, "new = 1\n\nFile path: [src/new.py]")
        await pilot.press("enter")
        await until_closed(pilot)
        await pilot.press("down", "p")
        await until_words(pilot, "-old = 1\n+older = 1")
        assert words(pilot).startswith("Editing: [old.py]")
        await pilot.press("c")
        await until_closed(pilot)
        await pilot.press("s")

    assert choose(root, PLAN, script) == ALL


def test_code_is_the_editor_where_none_is_set(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, done = editor(root, "")
    Path(command).rename(root / "code")
    monkeypatch.setenv("PATH", f"{root}:/usr/bin:/bin")

    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "down", "p")
        await until(pilot, done.exists)
        await until_words(pilot, EDITING)
        await pilot.press("escape", "q")

    assert choose(root, PLAN, script) is None


def test_editor_that_fails_is_told(root: Path) -> None:
    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "down", "p")
        await until(pilot, lambda: bool(list(pilot.app.screen.query("Toast"))))
        await pilot.press("escape", "q")

    assert choose(root, PLAN, script, editor="exit 3;") is None


def test_editor_outlives_the_checklist(root: Path) -> None:
    log = root / "log"
    command, _ = editor(root, f": > {log}; sleep 0.5; echo on >> {log}")

    async def script(pilot: Drive) -> None:
        await pilot.press("down", "down", "down", "p")
        await until(pilot, log.exists)
        await pilot.press("escape", "q")

    choose(root, PLAN, script, editor=command)
    assert log.read_text("utf-8") == "on\n"


@pytest.mark.parametrize("size", [(10, 3), (30, 8), (300, 100)])
def test_every_key_works_on_terminals_of_any_size(root: Path, size: tuple[int, int]) -> None:
    actions = tuple(Execute(command=f"echo {number}") for number in range(200))
    plan = Plan(title="T", rationale="", actions=actions)

    async def script(pilot: Drive) -> None:
        await pilot.press("a", "end", "space", "p")
        await until_words(pilot, "echo 199\n(e)dit or (c)lose \u203a")
        await pilot.press("e")
        await until_words(pilot, "New content \u203a")
        await pilot.press("end", "9", "enter")
        await until_closed(pilot)
        await pilot.press("s")

    choice = choose(root, plan, script, size=size)
    edits = {199: Execute(command="echo 1999")}
    assert choice == Choice(actions=frozenset({199}), edits=edits)
