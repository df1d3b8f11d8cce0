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

from takopi.cli.clipboard import copy, paste
from takopi.cli.errors import ABORTED, printable
from takopi.cli.names import known_names
from takopi.cli.review import ask_recovery, review
from takopi.cli.terminal import ask as ask_person
from takopi.cli.terminal import on_terminal
from takopi.config.load import load
from takopi.config.loaded import Config
from takopi.config.paths import find_home
from takopi.config.schema import Oneshot, Sessions
from takopi.core.errors import PlanInvalid, Refused
from takopi.turns import demo_planner, journal
from takopi.turns.actions import Bench
from takopi.turns.agents import DEFAULT, read_prompt
from takopi.turns.fences import correct
from takopi.turns.following import settle
from takopi.turns.hold import is_held
from takopi.turns.layout import Turn, find_root, find_turn, read_settings, write_text
from takopi.turns.machine import Choice, everything
from takopi.turns.outcome import Done
from takopi.turns.service import (
    Ask,
    Interrupted,
    Invalid,
    Proposal,
    Rules,
    check,
    create_session,
    execute,
    pending_request,
    plan_turn,
    recover,
    replan,
    skip,
    write_input,
)

if TYPE_CHECKING:
    from takopi.kit.proc import Keeper

app = typer.Typer(
    help="Work in turns: a plan, an approval, a report.",
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
)
GRACE_S = 2.0

Named = Annotated[str | None, typer.Option("--session", help="Another session than the newest.")]
Message = Annotated[str, typer.Option("--message", "-m", help="What you want of this turn.")]
NoCopy = Annotated[bool, typer.Option("--no-copy", help="Leave the clipboard alone.")]
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
    typer.echo(write_input(turn, _rules(_read_config()), environ=os.environ))


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
    if plan_file is None:
        turn = find_turn(Path.cwd(), session=session)
    else:
        folder = plan_file.parent.resolve()
        turn = find_turn(folder)
        if turn.path("plan.md") != folder / plan_file.name:
            raise Refused(f"{plan_file} is not the plan of a turn", way_out="name NN/plan.md")
    if code := _carry_on(turn, yes=yes):
        raise typer.Exit(code)


@app.command("resume")
def resume(message: Message = "", *, yes: Yes = False, session: Named = None) -> None:
    """Go on: carry out a plan that waits, else have the next turn planned."""
    import trio

    turn = settle(find_turn(Path.cwd(), session=session).session.latest())
    if turn.has("plan.md"):
        if message:
            raise Refused(
                f"turn {turn.id} has a plan that waits, and -m would not change it",
                way_out="leave -m out to carry it out, or have it planned anew: "
                "takopi session plan -m …",
            )
        if code := _carry_on(turn, yes=yes):
            raise typer.Exit(code)
    else:
        trio.run(_plan, turn, message or pending_request(turn) or _ask_message())


@app.command("status")
def status(session: Named = None) -> None:
    """Say where the session stands."""
    turn = settle(find_turn(Path.cwd(), session=session))
    state = "is planned" if turn.has("plan.md") else "waits for a plan"
    if is_held(turn.session):
        state = "is being worked on"
    elif journal.read_past(turn) is not None:
        state = "was interrupted while it was carried out"
    typer.echo(f"{turn.session.name}: turn {turn.id} ({turn.meta().agent}) {state}")


@app.command("preprocess")
def preprocess(
    plan_file: Annotated[
        str | None, typer.Argument(help="A plan to mend in place; - reads stdin.")
    ] = None,
    *,
    no_copy: NoCopy = False,
) -> None:
    """Correct the code fences of a plan: of a file in place, else of what is on the clipboard."""
    if plan_file is None:
        fixed = correct(paste())
        typer.echo(fixed, nl=False)
        if not no_copy:
            copy(fixed)
        return
    if plan_file == "-":
        typer.echo(correct(sys.stdin.read()), nl=False)
        return
    path = Path(plan_file)
    text = path.read_bytes().decode()
    if (fixed := correct(text)) != text:
        write_text(path, fixed)


@app.command("get-prompt")
def get_prompt(
    name: Annotated[str, typer.Argument(help="An agent.")] = DEFAULT, *, no_copy: NoCopy = False
) -> None:
    """Print the prompt of an agent, and copy it where there is a clipboard."""
    prompt = read_prompt(find_root(Path.cwd()), name)
    typer.echo(prompt, nl=False)
    if not no_copy:
        copy(prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tools:
    ask: Ask
    keeper: Keeper
    rules: Rules
    secrets: tuple[str, ...]
    research_command: tuple[str, ...]

    def bench(self, turn: Turn) -> Bench:
        return Bench(
            root=turn.root,
            keeper=self.keeper,
            environ=os.environ,
            secrets=self.secrets,
            grace_s=GRACE_S,
            research_command=self.research_command,
        )


def _read_config() -> Config | None:
    path = find_home(os.environ).config_file
    return load(path, known_names(), environ=os.environ) if path.exists() else None


def _rules(config: Config | None) -> Rules:
    table = config.sessions if config else Sessions()
    settings = config.oneshot if config else Oneshot()
    named = settings.backend if settings.backend == "demo" else ""
    return Rules(
        max_file_bytes=table.max_file_bytes,
        strict_context=table.strict_context,
        max_replans=table.max_replans,
        model=settings.model or named,
    )


@asynccontextmanager
async def _tools() -> AsyncGenerator[_Tools, None]:
    import trio

    from takopi.engines.claude.spec import ClaudeSettings
    from takopi.kit.proc import open_keeper
    from takopi.oneshot.choose import open_oneshot
    from takopi.oneshot.cli import Claude
    from takopi.oneshot.port import answer_within

    config = _read_config()
    settings = config.oneshot if config else Oneshot()
    secrets = (config.bot_token,) if config else ()
    engine = config.engines.get("claude") if config else None
    claude = Claude()
    if isinstance(engine, ClaudeSettings):
        claude = Claude(engine.command or "claude", engine.env, engine.use_api_billing)

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

        yield _Tools(
            ask=ask_demo if settings.backend == "demo" else ask,
            keeper=keeper,
            rules=_rules(config),
            secrets=secrets,
            research_command=config.sessions.research_command if config else (),
        )


async def _plan(turn: Turn, message: str) -> None:
    async with _tools() as tools:
        turn = await plan_turn(turn, message, ask=tools.ask, rules=tools.rules, environ=os.environ)
    typer.echo(turn.path("plan.md"))


def _carry_on(turn: Turn, *, yes: bool) -> int:
    """Bring a planned turn to its report, if the person wants it."""
    import trio

    found = check(turn, _rules(_read_config()))
    match found:
        case Invalid():
            return trio.run(_replan, found)
        case Interrupted():
            go_on = ask_recovery(turn, found.past)
            return ABORTED if go_on is None else trio.run(_recover, found, go_on)
        case Proposal():
            plan = found.plan
            choice = (
                everything(plan) if yes else review(turn, plan, settings=read_settings(turn.root))
            )
    if choice == "quit":
        return ABORTED
    if choice == "skip":
        message = _ask_message()
        trio.run(_plan, skip(found, message=message), message)
        return 0
    return trio.run(_execute, found, choice)


async def _execute(proposal: Proposal, choice: Choice) -> int:
    async with _tools() as tools:
        done = await execute(proposal, tools.bench(proposal.turn), choice=choice)
    return _tell(proposal.turn, done)


async def _recover(interrupted: Interrupted, go_on: bool) -> int:
    async with _tools() as tools:
        done = await recover(interrupted, tools.bench(interrupted.turn), go_on=go_on)
    code = _tell(interrupted.turn, done)
    return code if go_on else 1


async def _replan(invalid: Invalid) -> int:
    typer.echo("The plan failed its checks:", err=True)
    for error in invalid.errors:
        typer.echo(f"- {printable(error)}", err=True)
    async with _tools() as tools:
        turn = await replan(invalid, ask=tools.ask, rules=tools.rules, environ=os.environ)
    if turn is None:
        count = tools.rules.max_replans + 1
        raise PlanInvalid(
            f"{count} plans in a row failed their checks"
            if count > 1
            else "the plan failed its checks",
            way_out="say it differently: takopi session plan -m …",
        )
    typer.echo(f"turn {turn.id} has a corrected plan: {turn.path('plan.md')}", err=True)
    return PlanInvalid.exit_code


def _tell(turn: Turn, done: tuple[Done, ...]) -> int:
    for number, one in enumerate(done, 1):
        reason = f" ({one.outcome.reason})" if one.outcome.reason else ""
        line = f"{number}. {one.action.kind}: {one.outcome.status}{reason}"
        typer.echo(printable(line), err=True)
    typer.echo(turn.path("report.md"))
    return int(any(one.outcome.status == "FAILURE" for one in done))


def _ask_message() -> str:
    if not on_terminal():
        raise Refused("the turn needs a message", way_out="add -m MESSAGE")
    return ask_person("message", default="")
