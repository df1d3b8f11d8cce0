"""Puts the commands together, and turns whatever one comes to into an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from takopi.cli import config, init
from takopi.cli.errors import ending

app = typer.Typer(
    help="Your coding agents in your pocket.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(config.app, name="config")
app.command("init")(init.init)


@app.callback(invoke_without_command=True)
def takopi(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    # Taken out of argv by `run`, so that it may stand anywhere; declared for the help.
    debug: Annotated[  # ruff: ignore[unused-function-argument]
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Answer what is asked of takopi as a whole."""
    if version:
        from takopi import __version__

        typer.echo(f"takopi {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(argv: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    args = list(argv)
    options = args[: args.index("--")] if "--" in args else args
    debug = "--debug" in options
    if debug:
        args.remove("--debug")
    return ending(lambda: app(args=args, prog_name="takopi", standalone_mode=False), debug=debug)
