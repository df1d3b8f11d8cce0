"""Asks a person about a plan: all of it, some of it, some of it changed, or none of it."""

from __future__ import annotations

import difflib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import typer

from takopi.cli.preview import find_editor, open_file, printable, show_file, show_text
from takopi.cli.terminal import on_terminal
from takopi.core.errors import Unfit
from takopi.turns.journal import Past
from takopi.turns.layout import Settings, Turn
from takopi.turns.machine import (
    Choice,
    edit,
    everything,
    final_actions,
    toggle_action,
    toggle_all,
    toggle_memo,
)
from takopi.turns.plan import (
    Action,
    Chat,
    Create,
    Edit,
    Execute,
    Memo,
    Plan,
    Prune,
    Read,
    Research,
    Swap,
    subject,
)
from takopi.turns.render import render_action
from takopi.turns.swaps import exchange

Verdict = Literal["skip", "quit"]
RULE = "-" * 68
QUESTION = (
    "Execute this plan? (a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit \u203a"
)
HELP = (
    "[number] to toggle, [a] to toggle all, [p number] to preview details, "
    "[s] to confirm, [q] to go back \u203a"
)
OPENED = "Your editor has been opened to preview"
_NOUNS = {
    "CREATE": "file",
    "EDIT": "file",
    "READ": "resource",
    "PRUNE": "resource",
    "EXECUTE": "command",
    "RESEARCH": "research",
    "CHAT_WITH_USER": "message",
    "INVOKE": "handoff",
    "CONCLUDE": "handoff",
}


def review(turn: Turn, plan: Plan, *, settings: Settings) -> Choice | Verdict:
    """What a person wants of a plan that passed its checks."""
    need_person("add -y to approve all")
    typer.echo(summary(plan), err=True)
    while True:
        match _ask(QUESTION).lower()[:1]:
            case "a":
                return everything(plan)
            case "r":
                show_file(turn.path("plan.md"), settings.preview_command)
            case "m":
                if (choice := _Checklist(turn.root, plan, settings).run()) is not None:
                    return choice
            case "s":
                return "skip"
            case "q":
                return "quit"
            case _:
                pass


def ask_recovery(turn: Turn, past: Past) -> bool | None:
    """Whether an interrupted turn goes on, or is reported as failed; None to leave it."""
    need_person("run it on a terminal")
    typer.echo(f"Turn {turn.id} was interrupted while it was carried out.", err=True)
    for index, action in enumerate(final_actions(past.choice, past.plan)):
        typer.echo(f"  {_label(action)}: {_fate(past, index)}", err=True)
    question = "(f) Report as failed / (c)ontinue after the last finished action / (q)uit \u203a"
    while True:
        match _ask(question).lower()[:1]:
            case "f":
                return False
            case "c":
                return True
            case "q":
                return None
            case _:
                pass


def need_person(way_out: str) -> None:
    """`Unfit` if nobody can be asked."""
    if not on_terminal():
        raise Unfit("nobody can be asked without a terminal", way_out=way_out)


def summary(plan: Plan) -> str:
    """A plan on a few lines: its memos, and how many actions of which kind."""
    counts: dict[str, int] = {}
    for action in plan.actions:
        counts[action.kind] = counts.get(action.kind, 0) + 1
    lines = [f'▶ Reviewing Plan: "{printable(plan.title)}"', RULE, ""]
    if plan.memos:
        lines += [" memos.yaml:", *(f"  {_memo(memo)}" for memo in plan.memos), ""]
    lines.append(" Action Plan:")
    lines += [f"  - {kind + ':':<7} {_count(kind, count)}" for kind, count in counts.items()]
    return "\n".join([*lines, "", RULE])


def _count(kind: str, count: int) -> str:
    return f"{count} {_NOUNS[kind]}{'s' if count > 1 and kind != 'RESEARCH' else ''}"


def _memo(memo: Memo) -> str:
    word = "ADD:" if memo.sign == "+" else "REMOVE:"
    why = f" # {memo.why}" if memo.why else ""
    return printable(f"[{memo.sign}] {word:<7} {memo.text}{why}")


def _label(action: Action) -> str:
    return printable(f"{action.kind + ':':<7} {subject(action)}")


def _fate(past: Past, index: int) -> str:
    if index in past.ended:
        outcome = past.ended[index]
        return f"ran, {outcome.status}" + (f" ({outcome.reason})" if outcome.reason else "")
    if index not in past.choice.actions:
        return "was not approved"
    return "may have run, and is not run again" if index == past.unsure else "did not run"


def _ask(question: str, *, default: str | None = None) -> str:
    answer: object = typer.prompt(
        question, default=default, show_default=False, prompt_suffix=" ", err=True
    )
    return str(answer).strip()


@dataclass(slots=True)
class _Checklist:
    root: Path
    plan: Plan
    settings: Settings

    def run(self) -> Choice | None:
        """What is checked when the person confirms; None to go back."""
        choice = everything(self.plan)
        while True:
            typer.echo(self.shown(choice), err=True)
            answer = _ask(HELP).lower()
            previews, number = answer.startswith("p"), answer.removeprefix("p").strip()
            if number.isdecimal() and 1 <= int(number) <= self.count():
                choice = (
                    self.previewed(choice, number) if previews else self.toggled(choice, number)
                )
            elif answer == "a":
                choice = toggle_all(choice, self.plan)
            elif answer == "s":
                return choice
            elif answer == "q":
                return None

    def count(self) -> int:
        return len(self.plan.memos) + len(self.plan.actions)

    def toggled(self, choice: Choice, number: str) -> Choice:
        index = int(number) - 1 - len(self.plan.memos)
        return toggle_memo(choice, int(number) - 1) if index < 0 else toggle_action(choice, index)

    def shown(self, choice: Choice) -> str:
        lines: list[str] = []
        number = 0
        if self.plan.memos:
            lines += ["- Memos", " │"]
        for index, memo in enumerate(self.plan.memos):
            number += 1
            lines.append(_branch(number, index in choice.memos, len(self.plan.memos) == index + 1))
            lines[-1] += _memo(memo)
        lines += [*([""] if lines else []), "- Action Plan", " │"]
        for index, action in enumerate(final_actions(choice, self.plan)):
            number += 1
            last = len(self.plan.actions) == index + 1
            tag = " *modified" if index in choice.edits else ""
            lines.append(_branch(number, index in choice.actions, last) + _label(action) + tag)
        return "\n".join(["", *lines, ""])

    def previewed(self, choice: Choice, number: str) -> Choice:
        index = int(number) - 1 - len(self.plan.memos)
        if index < 0:
            show_text(_memo(self.plan.memos[index]))
            return choice
        action = final_actions(choice, self.plan)[index]
        match action:
            case Create():
                after = _save_as(action, self.settings)
            case Edit():
                before = self.text_before(choice, index, path=action.path)
                after = _edit(action, before, self.settings)
            case Execute():
                command = _change(action.command)
                after = replace(action, command=command)
            case Research():
                after = replace(action, queries=tuple(map(_change, action.queries)))
            case Read() | Prune():
                self.show_resource(action.path)
                after = action
            case _:
                show_text(action.text if isinstance(action, Chat) else render_action(action))
                after = action
        return edit(choice, self.plan, index=index, action=after)

    def show_resource(self, path: str) -> None:
        try:
            show_text((self.root / path).read_bytes().decode("utf-8", "replace"))
        except OSError as error:
            typer.echo(f"{printable(path)}: {error.strerror}", err=True)

    def text_before(self, choice: Choice, index: int, *, path: str) -> str:
        """What the file will be when the turn comes to this action."""
        file = self.root / path
        text = file.read_bytes().decode() if file.is_file() else ""
        for place, action in enumerate(final_actions(choice, self.plan)[:index]):
            if place not in choice.actions:
                continue
            if isinstance(action, Create) and action.path == path:
                text = action.content
            elif isinstance(action, Edit) and action.path == path:
                text, _ = exchange(text, action.swaps)
        return text


def _branch(number: int, checked: bool, last: bool) -> str:
    return f" {'└' if last else '├'}─[{'✓' if checked else ' '}] {number}. "


def _change(text: str) -> str:
    show_text(text)
    if _ask("(e)dit or (c)lose \u203a", default="c").lower()[:1] != "e":
        return text
    return _ask("New content \u203a", default=text) or text


def _save_as(action: Create, settings: Settings) -> Create:
    with _Draft(action.path, action.content, settings) as draft:
        if draft.is_open:
            typer.echo(
                f"{OPENED} the new file's content. You may edit it directly in this preview.\n",
                err=True,
            )
        typer.echo(f"File path: [{printable(action.path)}]", err=True)
        path = _ask("Press Enter to confirm, or type a new path \u203a", default=action.path)
        if draft.is_open:
            _until_saved("Have you finished editing and saved the file content? (y/n) \u203a")
        content = draft.read()
    # The lines of a plan's file all end, as the editors of most people make them.
    end = "\n" if content and not content.endswith("\n") else ""
    return replace(action, path=path or action.path, content=content + end)


def _edit(action: Edit, before: str, settings: Settings) -> Edit:
    proposed, _ = exchange(before, action.swaps)
    typer.echo(f"Editing: [{printable(action.path)}]\n", err=True)
    with _Draft(action.path, proposed, settings, before=before) as draft:
        if not draft.is_open:
            return action
        typer.echo(
            f"{OPENED} the proposed changes. You may edit the file directly in this preview "
            "to make final adjustments.\n",
            err=True,
        )
        _until_saved("Have you finished editing and saved the file? (y/n) \u203a")
        after = draft.read()
    if after == proposed:
        return action
    if after == before:
        typer.echo("Nothing would change; take the check away instead.", err=True)
        return action
    return replace(action, swaps=(Swap(before, after),))


def _until_saved(question: str) -> None:
    while _ask(question).lower()[:1] != "y":
        pass


class _Draft:
    """A text in a file of its own, open in the person's editor; shown here if there is none."""

    def __init__(self, path: str, text: str, settings: Settings, *, before: str = "") -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="takopi-preview-")
        self.file = Path(self.folder.name) / (Path(path).name or "preview")
        self.file.write_bytes(text.encode("utf-8", "surrogatepass"))
        editor = find_editor(settings.preview_command)
        self.is_open = bool(editor)
        self.editor = open_file(self.file, editor) if editor else None
        if not editor:
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), lineterm="")
            show_text("\n".join(lines) if before else text)

    def read(self) -> str:
        return self.file.read_bytes().decode("utf-8", "replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()
        if self.editor is not None:
            self.editor.poll()
