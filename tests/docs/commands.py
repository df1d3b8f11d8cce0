"""Which commands and options `takopi` has, found by walking its own tree of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from typer.main import get_command

from takopi.cli.app import app


def find(words: list[str]) -> tuple[list[str], Any]:
    """The words that name a command, as many as do, and that command."""
    command: Any = get_command(app)
    named: list[str] = []
    for word in words:
        inner = subcommands(command).get(word)
        if inner is None:
            break
        named.append(word)
        command = inner
    return named, command


def subcommands(command: Any) -> dict[str, Any]:
    """The commands below a command."""
    if not hasattr(command, "list_commands"):
        return {}
    context = typer.Context(command)
    return {name: command.get_command(context, name) for name in command.list_commands(context)}


def options(command: Any) -> set[str]:
    """Every option of a command, as it is typed."""
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


def leaves(command: Any, *above: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something by itself, by its words."""
    inner = subcommands(command)
    if not inner:
        yield above, command
    for name, below in inner.items():
        yield from leaves(below, *above, name)


ROOT_COMMAND: Any = get_command(app)
TOP = tuple(subcommands(ROOT_COMMAND))
"""What can stand behind `takopi`."""
