"""Puts the commands together, and turns whatever one comes to into an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from takopi.cli import completion, config, demo, doctor, init, prompt, runs, service
from takopi.cli.errors import DONE, ending
from takopi.core.errors import Refused

SESSION = "session"
INTERRUPTED = 130
"""What Typer makes of a Ctrl-C that it did not ask for; no command of ours ends with it."""


class _Commands(TyperGroup):
    """The commands, and every engine as one: `takopi codex` runs with codex as the default."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = [*super().list_commands(ctx), SESSION]
        # A shell that completes offers the engines as well; the help has a line for all of them.
        return [*names, *sorted(_engines() - {*names})] if ctx.resilient_parsing else names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name == SESSION:
            # It works with Trio, which the others do without.
            from takopi.cli import session

            command = get_command(session.app)
            command.name = SESSION
            return command
        known = super().get_command(ctx, cmd_name)
        if known is not None or cmd_name not in _engines():
            return known
        run = partial(_run_daemon, ctx, engine=cmd_name)
        return TyperCommand(cmd_name, callback=run, help=f"Run with {cmd_name} as the default.")


app = typer.Typer(
    cls=_Commands,
    help="Your coding agents in your pocket. Without a command, takopi runs; "
    "`takopi codex` runs with codex as the default engine.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(config.app, name="config")
app.add_typer(prompt.app, name="prompt")
app.add_typer(service.app, name="service")
app.command("init")(init.init)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("runs")(runs.runs)


@app.callback(invoke_without_command=True)
def takopi(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    # Read from the context, where the command of an engine finds it as well.
    verbose: Annotated[  # ruff: ignore[unused-function-argument]
        bool, typer.Option("--verbose", "-v", help="Log what happens, not only what goes wrong.")
    ] = False,
    # Taken out of argv by `run`, so that it may stand anywhere; declared for the help.
    debug: Annotated[  # ruff: ignore[unused-function-argument]
        bool, typer.Option("--debug", help="Log everything, and show the traceback of an error.")
    ] = False,
) -> None:
    """Answer what is asked of takopi as a whole."""
    if version:
        from takopi import __version__

        typer.echo(f"takopi {__version__}")
    elif context.invoked_subcommand is None:
        _run_daemon(context, engine=None)


def run(argv: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    args = list(argv)
    options = args[: args.index("--")] if "--" in args else args
    debug = "--debug" in options
    if debug:
        args.remove("--debug")
    return ending(partial(_call, args, debug=debug), debug=debug)


def _call(args: list[str], *, debug: bool) -> object:
    """Let Typer do its work, and say in our words what it has to complain of."""
    try:
        code = app(args=args, prog_name="takopi", standalone_mode=False, obj={"debug": debug})
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        if not (what := error.format_message()):
            return DONE  # a group without a command has printed its help
        context = getattr(error, "ctx", None)
        command = "takopi" if context is None else context.command_path
        way_out = f"`{command} --help` shows what can be typed"
        raise Refused(what, way_out=way_out) from error
    finally:
        # Typer exits as soon as it has installed something.
        if completion.INSTALL in args:
            completion.answer_first_tab()
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def _run_daemon(context: typer.Context, *, engine: str | None) -> None:
    from takopi.cli.run import run

    run(engine=engine, verbose=context.params["verbose"], debug=context.obj["debug"])


def _engines() -> frozenset[str]:
    from takopi.cli.names import known_names

    return frozenset(known_names().engines)
