"""`takopi init`: sets takopi up where it is not, and registers the folder it is run in."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from takopi.cli.errors import ABORTED, hint
from takopi.cli.names import known_names, no_engine
from takopi.cli.terminal import ask, confirm, on_terminal
from takopi.config.decode import as_table
from takopi.config.edit import open_edit
from takopi.config.load import find_problems, read_bytes
from takopi.config.loaded import Names
from takopi.config.paths import find_home
from takopi.config.rules import alias_fault, same_alias
from takopi.config.token import TOKEN
from takopi.core.errors import Refused, Unfit

if TYPE_CHECKING:
    from takopi.cli.setup import Setup
    from takopi.projects.checkout import Checkout

WORKTREES_DIR = ".worktrees"
ENGINES_BY_CHOICE = ("claude", "codex", "opencode", "pi")
GIT_DEADLINE_S = 60
"""For all questions to git together; a cold disk is slow, a dead one never answers."""


def init(
    alias: Annotated[
        str | None,
        typer.Argument(help="The project's name in the chat, as in /ALIAS.", show_default=False),
    ] = None,
    *,
    default: Annotated[
        bool, typer.Option("--default", help="Use it when a message names no project.")
    ] = False,
    main: Annotated[
        bool, typer.Option("--main", help="Record the main checkout instead of this folder.")
    ] = False,
    no_exclude: Annotated[
        bool, typer.Option("--no-exclude", help="Leave .git/info/exclude alone.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Overwrite a project of that alias without asking.")
    ] = False,
    no_project: Annotated[
        bool, typer.Option("--no-project", help="Leave this folder alone.")
    ] = False,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the bot token is; - is stdin.")
    ] = None,
    token_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variable that the bot token is in.")
    ] = None,
    chat_id: Annotated[
        int | None, typer.Option(metavar="ID", help="The chat, where it is known already.")
    ] = None,
    allow: Annotated[
        list[int] | None,
        typer.Option(metavar="USER_ID", help="Who may use takopi in a group; once for each."),
    ] = None,
    pair: Annotated[
        bool, typer.Option("--pair", help="Pair a chat by a code, also without a terminal.")
    ] = False,
    engine: Annotated[str | None, typer.Option(metavar="NAME", help="The default engine.")] = None,
    api_url: Annotated[
        str | None, typer.Option(metavar="URL", help="A Bot API server other than Telegram's.")
    ] = None,
    service: Annotated[
        bool | None, typer.Option("--service/--no-service", help="Let systemd run takopi, or not.")
    ] = None,
) -> None:
    """Set takopi up, if it is not, and register the current folder as a project."""
    from takopi.cli.setup import prepare
    from takopi.cli.setup_wishes import Wishes

    for given in (alias, token_file, token_env):
        if given is not None and TOKEN.fullmatch(given):
            raise Refused(
                "the token must not stand on the command line, where others can see it",
                way_out="run `takopi init` and type it, or name a file: --token-file FILE",
            )
    names = known_names()
    folder = _current_folder()
    if alias is not None and (fault := alias_fault(alias, names)):
        raise Refused(fault, way_out="choose another: takopi init ALIAS")
    if alias is not None and no_project:
        raise Refused("--no-project and an alias contradict each other", way_out="leave one out")
    wishes = Wishes(
        token_file=token_file,
        token_env=token_env,
        chat_id=chat_id,
        allow=tuple(allow or ()),
        pair=pair,
        engine=engine,
        api_url=api_url,
        service=service,
    )
    home = find_home(os.environ)
    lacks_project = alias is None and not no_project
    setup = prepare(wishes, home, names, lacks_project=lacks_project, by_choice=ENGINES_BY_CHOICE)
    if setup is not None:
        setup.connect()
    registers = not no_project
    if setup is not None and lacks_project:
        alias = _choose_alias(setup, folder, names)
        registers = alias is not None
    if registers:
        _register(
            folder,
            alias,
            names,
            default=default,
            main=main,
            no_exclude=no_exclude,
            yes=yes,
            tells_engine=setup is None,
        )
    if setup is not None:
        setup.finish()
    _say_what_is_missing(read_bytes(home.config_file) or b"", names, path=home.config_file)


def _choose_alias(setup: Setup, folder: Path, names: Names) -> str | None:
    """What a set-up makes of the folder it was started in; None for nothing."""
    if setup.is_project(folder):
        return None
    if _look_at(folder, to_main=False).checkout is None:
        hint("this is no git repository; `takopi init` in one makes it a project")
        return None
    hint("this repository can be a project; - leaves it alone")
    return _ask_alias(folder, names, none="-")


def _register(
    folder: Path,
    alias: str | None,
    names: Names,
    *,
    default: bool,
    main: bool,
    no_exclude: bool,
    yes: bool,
    tells_engine: bool,
) -> None:
    """Write the project into the config. `tells_engine`: nobody has said yet that there is none."""
    edit = open_edit(find_home(os.environ).config_file, names, environ=os.environ)
    alias = alias or _ask_alias(folder, names)
    if alias is None:
        return
    survey = _look_at(folder, to_main=main)
    taken = same_alias(alias, as_table(edit.values.get("projects")) or {})
    if taken is not None and not yes:
        _confirm_overwriting(taken)
    engine = choose_engine(edit.values, names)
    alias = edit.put_project(
        alias,
        {
            "path": str(survey.path),
            "worktrees_dir": WORKTREES_DIR,
            "default_engine": engine,
            "worktree_base": survey.base,
        },
    )
    if default:
        edit.set("default_project", alias)
    edit.save()
    typer.echo(f"{alias} is {survey.path}")
    typer.echo(f"write /{alias} in front of a message to work there")
    if survey.checkout is not None and not no_exclude:
        _exclude(survey.checkout, survey.path / WORKTREES_DIR)
    _say_hints(survey, alias)
    if engine is None and tells_engine:
        hint(no_engine(ENGINES_BY_CHOICE))


@dataclass(frozen=True, slots=True)
class Survey:
    """What git says about the folder that is registered."""

    path: Path
    checkout: Checkout | None
    base: str | None


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise Refused("this folder is gone", way_out="change to one that exists") from error


def suggest_alias(folder: Path, names: Names) -> str:
    """The folder's name, as far as it can be an alias; empty if it cannot."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", folder.name).strip("-")[:32].rstrip("-")
    return "" if alias_fault(name, names) else name


def _ask_alias(folder: Path, names: Names, *, none: str = "") -> str | None:
    """The alias that the person types; None for what means that there is to be none."""
    if not on_terminal():
        raise Refused("the project needs an alias", way_out="takopi init ALIAS")
    while True:
        alias = ask("alias of this project", default=suggest_alias(folder, names))
        if none and alias == none:
            return None
        fault = alias_fault(alias, names)
        if not fault:
            return alias
        hint(fault)


def _confirm_overwriting(alias: str) -> None:
    if not on_terminal():
        raise Refused(f"there is a project {alias} already", way_out="add --yes to overwrite it")
    if not confirm(f"There is a project {alias} already. Overwrite it?"):
        typer.echo(f"{alias} stays as it is", err=True)
        raise typer.Exit(ABORTED)


def choose_engine(values: Mapping[str, object], names: Names) -> str | None:
    """The config's default engine, else the first that is installed."""
    chosen = values.get("default_engine")
    if isinstance(chosen, str) and chosen in names.engines:
        return chosen
    for engine in ENGINES_BY_CHOICE:
        command = (as_table(values.get(engine)) or {}).get("command") or engine
        if isinstance(command, str) and _is_installed(command):
            return engine
    return None


def _is_installed(command: str) -> bool:
    try:
        return shutil.which(str(Path(command).expanduser())) is not None
    except RuntimeError:
        return False


def _look_at(folder: Path, *, to_main: bool) -> Survey:
    import trio

    from takopi.projects.branches import find_base
    from takopi.projects.checkout import find_checkout

    async def look() -> Survey:
        with trio.fail_after(GIT_DEADLINE_S):
            checkout = await find_checkout(folder)
            path = _main_of(checkout) if to_main else folder
            if checkout is None:
                return Survey(path, None, None)
            if to_main:
                checkout = await find_checkout(path)
            try:
                base = await find_base(path, None)
            except Refused:
                base = None
            return Survey(path, checkout, base)

    try:
        return trio.run(look)
    except trio.TooSlowError as error:
        raise Unfit(
            f"git gave no answer within {GIT_DEADLINE_S} s",
            way_out=f"try `git -C {folder} status`",
        ) from error


def _main_of(checkout: Checkout | None) -> Path:
    if checkout is None:
        raise Refused("this is no git repository, so it has no main checkout")
    if checkout.main is None:
        raise Refused("the repository is bare, so it has no main checkout")
    return checkout.main


def _exclude(checkout: Checkout, worktrees_dir: Path) -> None:
    import trio

    from takopi.projects.checkout import exclude

    async def write() -> None:
        with trio.fail_after(GIT_DEADLINE_S):
            if await exclude(checkout, worktrees_dir):
                typer.echo(f"git ignores {WORKTREES_DIR} from now on: {checkout.exclude_file}")

    try:
        trio.run(write)
    except (OSError, trio.TooSlowError) as error:
        hint(f"{checkout.exclude_file} could not be written, so git will see worktrees: {error}")


def _say_hints(survey: Survey, alias: str) -> None:
    checkout = survey.checkout
    if checkout is None:
        hint("this is no git repository, so @branch will not work here; `git init` makes it one")
    elif checkout.linked:
        mend = f"; `takopi init {alias} --main --yes` records {checkout.main} instead"
        hint(f"this is a worktree, and it was recorded{mend if checkout.main else ''}")
    elif survey.path != checkout.top:
        hint(f"this folder lies inside the repository {checkout.top}; only the folder was recorded")


def _say_what_is_missing(data: bytes, names: Names, *, path: Path) -> None:
    others = find_problems(data, names, environ=os.environ)
    missing = [
        problem
        for problem in find_problems(data, names, environ=os.environ, to_run=True)
        if problem not in others
    ]
    if missing:
        keys = " and ".join(problem.key for problem in missing)
        way_out = ", ".join(problem.way_out for problem in missing)
        hint(f"takopi cannot run without {keys}: {way_out}")
    if others:
        hint(f"{path} has problems: `takopi config list` shows them")
