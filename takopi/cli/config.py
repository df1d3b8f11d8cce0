"""`takopi config`: look at takopi.toml and change it without an editor."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from typing import Annotated

import typer

from takopi.cli.errors import hint
from takopi.cli.names import known_names
from takopi.cli.terminal import read_secret
from takopi.config.decode import TAKE_IT_OUT, as_table, key_of
from takopi.config.edit import ConfigEdit, open_edit, split_key, to_toml
from takopi.config.load import find_problems, mode_problems, read_bytes
from takopi.config.paths import find_home
from takopi.core.errors import ConfigInvalid, Problem, Refused, TakopiError

app = typer.Typer(help="Look at the config and change it.", pretty_exceptions_enable=False)


def _complete_key(incomplete: str) -> list[str]:
    """The keys that are set; none while the file cannot be read."""
    try:
        keys = [key_of(*parts) for parts, _ in _flat(_edit().values)]
    except TakopiError:
        return []
    return [key for key in keys if key.startswith(incomplete)]


Key = Annotated[
    str,
    typer.Argument(
        help="A dotted key, like limits.max_runs.",
        show_default=False,
        autocompletion=_complete_key,
    ),
]


@app.callback(invoke_without_command=True)
def config(context: typer.Context) -> None:
    """Look at the config and change it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("path")
def show_path() -> None:
    """Print where the config file is, whether it exists or not."""
    typer.echo(find_home(os.environ).config_file)


@app.command("list")
def list_all() -> None:
    """Print every key that is set, secrets masked, and what is wrong with them."""
    path = find_home(os.environ).config_file
    names = known_names()
    for parts, value in _flat(open_edit(path, names, environ=os.environ).values):
        typer.echo(f"{key_of(*parts)} = {to_toml(_masked(parts, value))}")
    data = read_bytes(path)
    if data is None:
        hint(f"there is no {path} yet; `takopi init` makes it")
        return
    problems = (*mode_problems(path), *find_problems(data, names, environ=os.environ))
    if problems:
        raise ConfigInvalid(problems)


@app.command("get")
def get(key: Key) -> None:
    """Print the value of one key as it stands in the file."""
    value = _edit().get(key)
    typer.echo(value if isinstance(value, str) else to_toml(value))


@app.command("set", context_settings={"ignore_unknown_options": True})
def set_value(
    key: Key,
    value: Annotated[
        str | None,
        typer.Argument(
            help="A TOML value; what is no TOML is text. A secret is asked for, or read from stdin."
        ),
    ] = None,
) -> None:
    """Set one key. A change that the config would not bear is refused."""
    parts = split_key(key)
    if parts == ["bot_token"] and value is not None:
        raise Refused(
            "the token must not stand on the command line, where others can see it",
            way_out="run `takopi config set bot_token` and type it, or pipe it in",
        )
    if value is None and not _is_secret(parts):
        raise Refused(f"{key} needs a value", way_out=f"takopi config set {key} VALUE")
    edit = _edit()
    edit.set(key, read_secret(key) if value is None else parse_value(value))
    try:
        edit.save()
    except ConfigInvalid as error:
        raise ConfigInvalid(tuple(map(_about_the_line, error.problems))) from error


@app.command("unset")
def unset(key: Key) -> None:
    """Take one key out, or a whole table, so that defaults hold again."""
    edit = _edit()
    edit.unset(key)
    edit.save()


def parse_value(text: str) -> object:
    """The TOML value that a text is, or else the text itself."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if parsed.keys() == {"value"} else text


def _about_the_line(problem: Problem) -> Problem:
    """The problem as one of what was typed: nothing of it is in the file."""
    if problem.way_out != TAKE_IT_OUT:
        return problem
    return Problem(problem.key, problem.what, "takopi.example.toml has every key")


def _edit() -> ConfigEdit:
    return open_edit(find_home(os.environ).config_file, known_names(), environ=os.environ)


def _flat(table: dict[str, object], *parts: str) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in table.items():
        inner = as_table(value)
        if inner:
            yield from _flat(inner, *parts, name)
        else:
            yield (*parts, name), value


def _is_secret(parts: list[str] | tuple[str, ...]) -> bool:
    return list(parts) == ["bot_token"] or "env" in parts[1:-1]


def _masked(parts: tuple[str, ...], value: object) -> object:
    return "********" if _is_secret(parts) else value
