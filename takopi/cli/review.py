"""Asks a person about a plan: all of it, some of it, some of it changed, or none of it."""

from __future__ import annotations

import os
from typing import Literal

import typer

from takopi.cli.plan_words import action_line, summary
from takopi.cli.preview import Draft, show_file
from takopi.cli.terminal import on_terminal
from takopi.core.errors import Unfit
from takopi.turns.journal import Past
from takopi.turns.layout import Settings, Turn, read_text
from takopi.turns.machine import Choice, everything, final_actions
from takopi.turns.plan import Action, Plan
from takopi.turns.service import ONCE

Verdict = Literal["skip", "quit"]
QUESTION = (
    "Execute this plan? (a)pprove all / (r)eview full plan / (m)odify / (s)kip / (q)uit \u203a"
)


def review(turn: Turn, plan: Plan, *, settings: Settings) -> Choice | Verdict:
    """What a person wants of a plan that passed its checks."""
    need_person("add -y to approve all")
    typer.echo(summary(plan), err=True)
    # A copy is shown, which a window may keep open: the plan itself is never changed here.
    with Draft("plan.md", read_text(turn.path("plan.md"))) as copy:
        copy.file.chmod(0o444)
        while True:
            match _ask(QUESTION).lower()[:1]:
                case "a":
                    return everything(plan)
                case "r":
                    show_file(copy.file, settings.preview_command)
                case "m":
                    if (choice := _modify(turn, plan, settings)) is not None:
                        return choice
                case "s":
                    return "skip"
                case "q":
                    return "quit"
                case _:
                    pass


def _modify(turn: Turn, plan: Plan, settings: Settings) -> Choice | None:
    if os.environ.get("TERM", "dumb") == "dumb":
        typer.echo("This terminal cannot show a checklist: TERM is dumb.", err=True)
        return None
    # It is heavy, and nobody else needs it.
    from takopi.cli.review_tui import choose

    return choose(turn.root, plan, settings=settings)


def ask_recovery(turn: Turn, past: Past) -> bool | None:
    """Whether an interrupted turn goes on, or is reported as failed; None to leave it."""
    need_person("run it on a terminal")
    typer.echo(f"Turn {turn.id} was interrupted while it was carried out.", err=True)
    for index, action in enumerate(final_actions(past.choice, past.plan)):
        typer.echo(f"  {action_line(action)}: {_fate(past, index, action)}", err=True)
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


def _fate(past: Past, index: int, action: Action) -> str:
    if index in past.ended:
        outcome = past.ended[index]
        return f"ran, {outcome.status}" + (f" ({outcome.reason})" if outcome.reason else "")
    if index not in past.choice.actions:
        return "was not approved"
    if index != past.unsure:
        return "did not run"
    again = "is not run again" if isinstance(action, ONCE) else "is run again to continue"
    return f"may have run, and {again}"


def _ask(question: str) -> str:
    answer: object = typer.prompt(question, prompt_suffix=" ", err=True)
    return str(answer).strip()
