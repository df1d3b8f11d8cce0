"""`takopi session` and `teddy`: work in turns, each with a plan, an approval and a report."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from takopi.cli.errors import ABORTED
from takopi.cli.names import known_names
from takopi.cli.terminal import ask as ask_person
from takopi.cli.terminal import on_terminal
from takopi.config.load import load
from takopi.config.paths import find_home
from takopi.config.schema import EngineSettings, Oneshot
from takopi.core.errors import Refused, Unfit
from takopi.turns import demo_planner, journal
from takopi.turns.actions import Bench
from takopi.turns.agents import DEFAULT, read_prompt
from takopi.turns.fences import correct
from takopi.turns.layout import Turn, find_root, find_turn, read_text, write_text
from takopi.turns.outcome import Done
from takopi.turns.plan import Plan
from takopi.turns.render import render_memo
from takopi.turns.service import (
    Ask,
    Invalid,
    Proposal,
    Rules,
    check,
    create_session,
    execute,
    plan_turn,
    replan,
    settle,
    skip,
    write_input,
)

if TYPE_CHECKING:
    from takopi.kit.proc import Keeper

app = typer.Typer(
    help="Work in turns: a plan, an approval, a report.",
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
RULES = Rules()
GRACE_S = 2.0

Named = Annotated[str | None, typer.Option("--session", help="Another session than the newest.")]
Message = Annotated[str, typer.Option("--message", "-m", help="What you want of this turn.")]
Yes = Annotated[bool, typer.Option("-y", help="Approve all actions.")]


def main() -> None:
    """Entry point of `teddy`."""
    from takopi.cli.app import run

    sys.exit(run(["session", *sys.argv[1:]]))


@app.command("new")
def new(name: Annotated[str, typer.Argument(help="Small letters, digits and hyphens.")]) -> None:
    """Begin a session; prints its folder."""
    typer.echo(create_session(find_root(Path.cwd()), name).folder)


@app.command("context")
def context(session: Named = None) -> None:
    """Write the current turn's input.md; prints its path."""
    turn = settle(find_turn(Path.cwd(), session=session))
    typer.echo(write_input(turn, RULES, environ=os.environ))


@app.command("plan")
def plan(message: Message = "", session: Named = None) -> None:
    """Have the current turn planned; prints the path of the plan."""
    import trio

    turn = find_turn(Path.cwd(), session=session)
    trio.run(_plan, turn, message or _ask_message())


@app.command("execute")
def execute_plan(
    plan_file: Annotated[Path | None, typer.Argument(show_default=False)] = None,
    *,
    yes: Yes = False,
    session: Named = None,
) -> None:
    """Carry out the current turn's plan, once it is approved."""
    import trio

    if plan_file is None:
        turn = find_turn(Path.cwd(), session=session)
    else:
        turn = find_turn(plan_file.absolute().parent)
        if turn.path("plan.md") != plan_file.absolute():
            raise Refused(f"{plan_file} is not the plan of a turn", way_out="name NN/plan.md")
    if code := trio.run(_execute, turn, yes):
        raise typer.Exit(code)


@app.command("resume")
def resume(message: Message = "", *, yes: Yes = False, session: Named = None) -> None:
    """Go on: carry out a plan that waits, else have the next turn planned."""
    import trio

    turn = settle(find_turn(Path.cwd(), session=session))
    if turn.has("plan.md"):
        if code := trio.run(_execute, turn, yes):
            raise typer.Exit(code)
    else:
        trio.run(_plan, turn, message or _ask_message())


@app.command("status")
def status(session: Named = None) -> None:
    """Say where the session stands."""
    turn = settle(find_turn(Path.cwd(), session=session))
    state = "is planned" if turn.has("plan.md") else "waits for a plan"
    if turn.has(journal.NAME):
        state = "was interrupted while it was carried out"
    typer.echo(f"{turn.session.name}: turn {turn.id} ({turn.meta().agent}) {state}")


@app.command("preprocess")
def preprocess(
    plan_file: Annotated[str, typer.Argument(help="A plan to mend in place; - reads stdin.")],
) -> None:
    """Correct the code fences of a plan."""
    if plan_file == "-":
        typer.echo(correct(sys.stdin.read()), nl=False)
        return
    path = Path(plan_file)
    text = path.read_bytes().decode()
    if (fixed := correct(text)) != text:
        write_text(path, fixed)


@app.command("get-prompt")
def get_prompt(name: Annotated[str, typer.Argument(help="An agent.")] = DEFAULT) -> None:
    """Print the prompt of an agent."""
    typer.echo(read_prompt(find_root(Path.cwd()), name), nl=False)


@dataclass(frozen=True, slots=True)
class _Tools:
    ask: Ask
    keeper: Keeper
    secrets: tuple[str, ...]


@asynccontextmanager
async def _tools() -> AsyncGenerator[_Tools, None]:
    import trio

    from takopi.kit.proc import open_keeper
    from takopi.oneshot.choose import open_oneshot
    from takopi.oneshot.cli import Claude
    from takopi.oneshot.port import answer_within

    path = find_home(os.environ).config_file
    config = load(path, known_names(), environ=os.environ) if path.exists() else None
    settings = config.oneshot if config else Oneshot()
    secrets = (config.bot_token,) if config else ()
    engine = config.engines.get("claude") if config else None
    table = engine or EngineSettings()
    claude = Claude(command=table.command or "claude", env=table.env)

    async def ask_demo(system: str, user: str) -> str:
        await trio.lowlevel.checkpoint()
        return demo_planner.plan(system, user)

    async with (
        open_keeper(on_lost=lambda: None) as keeper,
        open_oneshot(
            settings, keeper, claude=claude, environ=os.environ, secrets=secrets, grace_s=GRACE_S
        ) as oneshot,
    ):

        async def ask(system: str, user: str) -> str:
            with answer_within(settings.timeout_s):
                return await oneshot.ask(system, user)

        yield _Tools(ask_demo if settings.backend == "demo" else ask, keeper, secrets)


async def _plan(turn: Turn, message: str) -> None:
    async with _tools() as tools:
        turn = await plan_turn(turn, message, ask=tools.ask, rules=RULES, environ=os.environ)
    typer.echo(turn.path("plan.md"))


async def _execute(turn: Turn, yes: bool) -> int:
    if turn.has("report.md"):
        raise Refused(f"turn {turn.id} is done", way_out="`takopi session resume` goes on")
    found = check(turn, RULES)
    past = journal.read_past(turn)
    if isinstance(found, Invalid) and past is None:
        return await _replan(found)
    if isinstance(found, Invalid):
        raise Refused(
            f"turn {turn.id} was interrupted, and its plan no longer fits the project",
            way_out=f"see {turn.path(journal.NAME)} for what ran",
        )
    if past is not None:
        raise Refused(
            f"turn {turn.id} was interrupted: {len(past.ended)} of {len(found.plan.actions)} "
            "actions are known to have ended",
            way_out=f"see {turn.path(journal.NAME)} for what ran",
        )
    choice = "a" if yes else _review(found)
    if choice == "q":
        return ABORTED
    if choice == "s":
        following = skip(found, message=_ask_message())
        typer.echo(f"skipped; turn {following.id} waits for a plan")
        return 0
    async with _tools() as tools:
        bench = Bench(
            root=turn.root,
            keeper=tools.keeper,
            environ=os.environ,
            secrets=tools.secrets,
            grace_s=GRACE_S,
        )
        everything = frozenset(range(len(found.plan.actions)))
        done = await execute(found, bench, approved=everything)
    return _tell(turn, done)


async def _replan(invalid: Invalid) -> int:
    typer.echo("The plan failed its checks:", err=True)
    for error in invalid.errors:
        typer.echo(f"- {error}", err=True)
    async with _tools() as tools:
        turn = await replan(invalid, ask=tools.ask, rules=RULES, environ=os.environ)
    if turn is None:
        raise Refused(
            f"{RULES.max_replans + 1} plans in a row failed their checks",
            way_out="say it differently: session plan -m …",
        )
    typer.echo(f"turn {turn.id} has a corrected plan: {turn.path('plan.md')}", err=True)
    return 1


def _review(proposal: Proposal) -> str:
    if not on_terminal():
        raise Unfit("nobody can be asked without a terminal", way_out="add -y to approve all")
    typer.echo(_summary(proposal.plan), err=True)
    question = "Execute this plan? (a)pprove all / (r)eview full plan / (s)kip / (q)uit"
    while True:
        choice = ask_person(question, default="").lower()[:1]
        if choice == "r":
            typer.echo(read_text(proposal.turn.path("plan.md")), err=True)
        elif choice in {"a", "s", "q"}:
            return choice


def _summary(plan: Plan) -> str:
    rule = "-" * 68
    counts: dict[str, int] = {}
    for action in plan.actions:
        counts[action.kind] = counts.get(action.kind, 0) + 1
    lines = [f'▶ Reviewing Plan: "{plan.title}"', rule]
    if plan.memos:
        lines += [" memos.yaml:", *(f"  {render_memo(memo)}" for memo in plan.memos)]
    lines += [" Action Plan:", *(f"  - {kind}: {count}" for kind, count in counts.items()), rule]
    return "\n".join(lines)


def _tell(turn: Turn, done: tuple[Done, ...]) -> int:
    for number, one in enumerate(done, 1):
        reason = f" ({one.outcome.reason})" if one.outcome.reason else ""
        typer.echo(f"{number}. {one.action.kind}: {one.outcome.status}{reason}", err=True)
    typer.echo(turn.path("report.md"))
    return int(any(one.outcome.status == "FAILURE" for one in done))


def _ask_message() -> str:
    if not on_terminal():
        raise Refused("the turn needs a message", way_out="add -m MESSAGE")
    return ask_person("message", default="")
