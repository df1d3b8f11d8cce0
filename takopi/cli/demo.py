"""`takopi demo`: the real daemon in a home that is thrown away, with a page instead of Telegram."""

from __future__ import annotations

from functools import partial
from typing import Annotated, cast

import typer

from takopi.cli.demo_project import ALIAS, CURE, TOOLS

WELCOME = """
  takopi runs, in a home that is thrown away, with a project called {alias}
  and an engine that has no model behind it. Its page is

    {url}

  Six things to try there:

  1. run python3 -m unittest
     A run: its steps as they happen, then the answer. One test fails.

  2. @fix/arms write arms.json: {cure} then run python3 -m unittest
     The same on a branch, in a worktree of its own. Now all tests pass.

  3. remember the number 42
     Then reply to the answer: what do you remember?

  4. /{tools} tool call sample__add {{"a": 40, "b": 2}}
     A tool of an MCP server: nothing happens before you allow it.

  5. steps 20 every 500ms
     Press Cancel on the way.

  6. /session new hello
     Then /session plan write a greeting
     A plan that you decide on before it happens.

  `help` tells what else the demo engine can do, `/help` what takopi can.
  Ctrl-C ends takopi and removes what it made.
"""


def demo(
    context: typer.Context,
    *,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Play a conversation, print it, and end.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of the page; 0 takes a free one.")
    ] = 0,
) -> None:
    """Try takopi without an account: a sample project, an engine without a model, a page."""
    import trio

    from takopi.cli.demo_run import Wishes, play_once, serve

    debug, verbose = context.obj["debug"], context.find_root().params["verbose"]
    level = "debug" if debug else "info" if verbose else "warning"
    wishes = Wishes(port=port, level=level, opens_page=open_page)
    failure: Exception | None = None
    try:
        if once:
            trio.run(partial(play_once, wishes, tell=typer.echo))
        else:
            trio.run(partial(serve, wishes, greet=_greet))
    # Whatever it is: one error is what a person can read, the nurseries it passed through are not.
    except* Exception as group:  # ruff: ignore[blind-except] it is raised again
        failure = _first(group)
    if failure is not None:
        raise failure


def _greet(url: str) -> None:
    typer.echo(WELCOME.format(alias=ALIAS, tools=TOOLS, url=url, cure=CURE))


def _first(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    return error
