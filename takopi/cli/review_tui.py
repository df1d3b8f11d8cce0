"""The checklist of a plan on the whole terminal: what is checked on confirming is what is done.

It runs on asyncio, so it runs before Trio is started; and in the main thread, since that one alone
hears that a terminal has changed its size.
"""

from __future__ import annotations

import difflib
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import typer
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static, Tree

from takopi.cli.errors import printable
from takopi.cli.plan_words import action_line, memo_line
from takopi.cli.preview import Draft, find_editor, needs_terminal, open_beside, open_here
from takopi.cli.review_dialogs import AskLine, AskText, Finished, Look
from takopi.turns.layout import Settings
from takopi.turns.machine import (
    Choice,
    edit,
    everything,
    final_actions,
    toggle_action,
    toggle_all,
    toggle_memo,
)
from takopi.turns.plan import Action, Create, Edit, Plan, Prune, Read
from takopi.turns.revise import (
    can_be_kept,
    create_fault,
    text_before,
    with_file,
    with_result,
    with_words,
    words_of,
)
from takopi.turns.swaps import exchange

HELP = (
    "Use [↑/↓] to navigate, [enter] to toggle, [a] to toggle all, [p] to preview details, "
    "[s] to confirm."
)
OPENED = "Your editor has been opened to preview"
CREATING = f"{OPENED} the new file's content. You may edit it directly in this preview."
EDITING = (
    f"{OPENED} the proposed changes. You may edit the file directly in this preview to make "
    "final adjustments."
)
INTERRUPTED = 130
SHOWN_CHARS = 64 * 1024
LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class Row:
    """What a line of the tree stands for."""

    part: Literal["memo", "action"]
    index: int
    checked: bool
    text: str
    modified: bool = False

    def label(self) -> Text:
        """The line itself."""
        box = ("[✓]", "green") if self.checked else ("[ ]", "dim")
        tag = (" *modified", "yellow") if self.modified else ""
        return Text.assemble(box, f" {self.text.expandtabs()}", tag)


def rows(plan: Plan, choice: Choice) -> tuple[list[Row], list[Row]]:
    """The lines of the memos and of the actions."""
    memos = [
        Row("memo", index, index in choice.memos, memo_line(memo))
        for index, memo in enumerate(plan.memos)
    ]
    actions = [
        Row("action", index, index in choice.actions, action_line(action), index in choice.edits)
        for index, action in enumerate(final_actions(choice, plan))
    ]
    return memos, actions


def choose(root: Path, plan: Plan, *, settings: Settings) -> Choice | None:
    """What a person has checked and changed of a plan; None to go back."""
    checklist = Checklist(root, plan, settings=settings)
    choice = checklist.run()
    if checklist.return_code == INTERRUPTED:
        raise typer.Abort
    if checklist.return_code:
        raise RuntimeError("the checklist broke off")
    return choice


class PlanTree(Tree[Row]):
    """A tree in which the space bar does what Enter does."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "select_cursor", show=False)]


class Checklist(App[Choice | None]):
    """Memos and actions, each with a box."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #help, #state { height: auto; padding: 0 1; }
    #state { color: $text-muted; }
    PlanTree { height: 1fr; }
    .-low #help { height: 1; }
    .-low #state { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "toggle_all"),
        Binding("p", "preview"),
        Binding("s", "confirm"),
        Binding("q", "go_back"),
        Binding("ctrl+c", "interrupt", priority=True),
    ]

    def __init__(self, root: Path, plan: Plan, *, settings: Settings) -> None:
        super().__init__()
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (15, "-high")]
        self.root, self.plan, self.settings = root, plan, settings
        self.choice = everything(plan)
        self.windows: list[subprocess.Popen[bytes]] = []

    def compose(self) -> ComposeResult:
        yield Static(HELP, id="help", markup=False)
        yield PlanTree("Plan")
        yield Static(self.state(), id="state", markup=False)

    def on_mount(self) -> None:
        tree = self.query_one(PlanTree)
        tree.show_root = False
        tree.guide_depth = 3
        for name, found in zip(("Memos", "Action Plan"), rows(self.plan, self.choice), strict=True):
            if found:
                branch = tree.root.add(f"- {name}", expand=True, allow_expand=False)
                for row in found:
                    branch.add_leaf(row.label(), row)
        tree.cursor_line = 1  # below the first heading
        tree.focus()
        self.set_interval(LOOK_EVERY_S, self.look_at_windows)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Row]) -> None:
        if (row := event.node.data) is not None:
            toggle = toggle_memo if row.part == "memo" else toggle_action
            self.decide(toggle(self.choice, row.index))

    def decide(self, choice: Choice) -> None:
        self.choice = choice
        found = {(row.part, row.index): row for part in rows(self.plan, choice) for row in part}
        for branch in self.query_one(PlanTree).root.children:
            for node in branch.children:
                if node.data is not None:
                    node.data = found[node.data.part, node.data.index]
                    node.set_label(node.data.label())
        self.query_one("#state", Static).update(self.state())

    def state(self) -> str:
        checked = len(self.choice.memos) + len(self.choice.actions)
        total = len(self.plan.memos) + len(self.plan.actions)
        return f"{checked} of {total} checked, [q] to go back"

    def action_toggle_all(self) -> None:
        self.decide(toggle_all(self.choice, self.plan))

    def action_confirm(self) -> None:
        if self.choice.memos or self.choice.actions:
            self.exit(self.choice)
        else:
            self.notify("Nothing is checked.", severity="warning")

    def action_go_back(self) -> None:
        self.exit()

    def action_interrupt(self) -> None:
        self.exit(return_code=INTERRUPTED)

    @work(exclusive=True)
    async def action_preview(self) -> None:
        node = self.query_one(PlanTree).cursor_node
        if node is None or node.data is None:
            return
        index = node.data.index
        if node.data.part == "memo":
            await self.push_screen_wait(Look("Memo", Text(node.data.text), may_change=False))
            return
        action = final_actions(self.choice, self.plan)[index]
        changed = await self.previewed(action, index)
        if can_be_kept(changed):
            self.decide(edit(self.choice, self.plan, index=index, action=changed))
        else:
            self.notify("That cannot be noted down; change it differently.", severity="error")

    async def previewed(self, action: Action, index: int) -> Action:
        match action:
            case Create():
                return await self.save_as(action)
            case Edit():
                return await self.edit_file(action, index)
            case Read() | Prune():
                await self.push_screen_wait(
                    Look(printable(action.path), self.resource(action.path), may_change=False)
                )
                return action
            case _:
                words = [await self.change(action, text) for text in words_of(action)]
                return with_words(action, tuple(words))

    async def save_as(self, action: Create) -> Create:
        with Draft(action.path, action.content) as draft:
            opened = self.open(draft.file)
            message = f"{CREATING}\n\n" if opened else f"{_clean(action.content)}\n\n"
            path = await self.push_screen_wait(
                AskLine(
                    Text(f"{message}File path: [{printable(action.path)}]"),
                    "Press Enter to confirm, or type a new path \u203a",
                    value=action.path,
                    fault=partial(self.path_fault, action),
                )
            )
            if path is None:
                return action
            question = "Have you finished editing and saved the file content? (y/n) \u203a"
            if opened and not await self.push_screen_wait(Finished("", question)):
                return action
            return with_file(action, path=path, content=draft.read())

    def path_fault(self, action: Create, path: str) -> str | None:
        return None if path == action.path else create_fault(self.root, path)

    async def edit_file(self, action: Edit, index: int) -> Edit:
        before = text_before(self.root, self.plan, self.choice, index=index)
        proposed, _ = exchange(before, action.swaps)
        with Draft(action.path, proposed) as draft:
            if not self.open(draft.file):
                title = f"Editing: [{printable(action.path)}]"
                await self.push_screen_wait(Look(title, _diff(before, proposed), may_change=False))
                return action
            message = f"Editing: [{printable(action.path)}]\n\n{EDITING}"
            question = "Have you finished editing and saved the file? (y/n) \u203a"
            finished = await self.push_screen_wait(Finished(message, question))
            after = draft.read() if finished else proposed
        if after == before:
            self.notify("Nothing would change; take the check away instead.", severity="warning")
        return with_result(action, before=before, after=after)

    async def change(self, action: Action, text: str) -> str:
        # A field would show a character that a terminal obeys as it is.
        plain = all(printable(line) == line for line in text.split("\n"))
        title = action.kind if plain else f"{action.kind}, with characters that have no shape"
        look = Look(title, Text(_clean(text)), may_change=plain)
        if not await self.push_screen_wait(look):
            return text
        if "\n" in text:
            changed = await self.push_screen_wait(AskText(text))
        else:
            line = AskLine(Text(action.kind), "New content \u203a", value=text, fault=_no_fault)
            changed = await self.push_screen_wait(line)
        return text if changed is None else changed

    def resource(self, path: str) -> Text:
        try:
            shown = _read_start(self.root / path)
        except (OSError, ValueError):
            return Text("It cannot be read.", "red")
        return Text(_clean(shown))

    def open(self, file: Path) -> bool:
        """Open a file in the editor; False if there is none."""
        editor = find_editor(self.settings.preview_command)
        if needs_terminal(editor):
            with self.suspend():
                code = open_here(file, editor)
            self.tell_failure(editor, code)
        elif editor:
            self.windows.append(open_beside(file, editor))
        return bool(editor)

    def look_at_windows(self) -> None:
        # asyncio would kill its own processes with its loop, and an editor is the person's.
        for window in [one for one in self.windows if one.poll() is not None]:
            self.windows.remove(window)
            self.tell_failure(find_editor(self.settings.preview_command), window.returncode)

    def tell_failure(self, editor: str, code: int) -> None:
        if code:
            what = f"{printable(editor)} failed with exit code {code}."
            self.notify(what, severity="error", markup=False)


def _read_start(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(path)  # a pipe would never end
    with path.open("rb") as file:
        return file.read(SHOWN_CHARS * 4).decode("utf-8", "replace")


def _no_fault(_: str) -> str | None:
    return None


def _clean(text: str) -> str:
    shown = "\n".join(printable(line) for line in text[:SHOWN_CHARS].splitlines())
    return f"{shown}\n… cut …" if len(text) > SHOWN_CHARS else shown


def _diff(before: str, after: str) -> Text:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")
    styles = {"+": "green", "-": "red"}
    # The first two lines name files, which the title does.
    shown = _clean("\n".join(list(lines)[2:])).split("\n")
    return Text("\n").join(Text(line, styles.get(line[:1], "")) for line in shown)
