"""The set-up half of `takopi init`: a bot, a chat, an engine and, if wanted, a service.

Each answer is kept as soon as it is known, and what is kept is not asked for again: a set-up that
was stopped goes on where it was.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio
import typer

from takopi.app.lock import hold
from takopi.cli.errors import hint, plain
from takopi.cli.names import no_engine
from takopi.cli.setup_discovery import Found, Paths, find_engines, find_paths
from takopi.cli.setup_pairing import LIFE_S, greet, pair
from takopi.cli.setup_token import ask_token, look_up, open_api, read_token
from takopi.cli.setup_wishes import Wishes, check_wishes
from takopi.cli.terminal import ask, confirm, on_terminal
from takopi.config.decode import as_table
from takopi.config.edit import open_edit
from takopi.config.load import mode_problems, parse, read_bytes
from takopi.config.loaded import Config, Names
from takopi.config.paths import PRIVATE_FILE, Home, make_home
from takopi.config.token import VARIABLE
from takopi.core.errors import BadToken, ConfigInvalid, Refused, TakopiError
from takopi.telegram.api import Me

T = TypeVar("T")

UNFINISHED = "setup-unfinished"
"""The file in the home that says that a set-up was begun, and is not at its end."""

INTRODUCTION = """\
takopi needs a bot of your own. In Telegram, write /newbot to @BotFather.
It asks for two names, and gives you a token: paste it here."""

CODE = """\
The bot is @{bot}. Let it know you: open this, and press Start

    https://t.me/{bot}?start={code}

or send it this code:

    {shown}

The code is good for {minutes:.0f} minutes, for one person. Waiting ..."""

WELCOME = "This chat is paired with takopi on {host}. Write a task here once takopi runs."


def prepare(
    wishes: Wishes, home: Home, names: Names, *, lacks_project: bool, by_choice: Sequence[str]
) -> Setup | None:
    """The set-up that is to be done; None if there is nothing to do or nobody to ask.

    `lacks_project` says that no option settles whether the folder becomes a project. `by_choice`
    are the engines to look for, the preferred ones in front.
    """
    if not wishes.are_any and not on_terminal():
        return None
    unfinished = (home.folder / UNFINISHED).exists()
    try:
        setup = Setup(wishes, home, names, by_choice=by_choice)
    except ConfigInvalid:
        if wishes.are_any or unfinished:
            raise
        # A project can be registered all the same.
        return None
    setup.whole = setup.whole or unfinished
    if not wishes.are_any and not setup.whole:
        return None
    if problems := mode_problems(home.config_file):
        raise ConfigInvalid(problems)
    check_wishes(wishes, setup.config, names, lacks_project=lacks_project)
    return setup


class Setup:
    """One run of the set-up. `whole` says that it is the first one, or goes on with that."""

    def __init__(
        self, wishes: Wishes, home: Home, names: Names, *, by_choice: Sequence[str]
    ) -> None:
        self._wishes = wishes
        self._home = home
        self._names = names
        self._by_choice = by_choice
        self.config = self._read()
        self._paths: Paths | None = None
        self._me: Me | None = None
        self.whole = self.lacks_telegram

    @property
    def lacks_telegram(self) -> bool:
        """Whether takopi could not run for want of a token or a chat."""
        config = self.config
        return "telegram" in config.transports and not (config.bot_token and config.chat_id)

    def connect(self) -> None:
        """Everything up to the engine: what a message needs to come in and to be worked on."""
        if self._wishes.api_url is not None:
            self._keep({"api_url": self._wishes.api_url})
        if "telegram" in self.config.transports:
            self._settle_token()
            if self.config.bot_token:
                self._settle_chat()
        self._settle_engine()

    def is_project(self, folder: Path) -> bool:
        """Whether the folder is a project already."""
        return any(project.path == folder for project in self.config.projects.values())

    def finish(self) -> None:
        """The service, and what to do next."""
        self.config = self._read()
        wanted = self._wishes.service
        if wanted is None and self.whole and not self.lacks_telegram and on_terminal():
            # Where there is no systemd, there is nothing to decide.
            wanted = self._offer_service() if shutil.which("systemctl") else False
        elif wanted:
            self._install_service()
        (self._home.folder / UNFINISHED).unlink(missing_ok=True)
        if self.whole and not self.lacks_telegram:
            bot = f"@{self._me.username}" if self._me else "your bot"
            first = "" if wanted else "run `takopi`, and then "
            typer.echo(f"takopi is set up: {first}write to {bot}")

    def _settle_token(self) -> None:
        wishes = self._wishes
        if wishes.has_token:
            token = read_token(file=wishes.token_file, variable=wishes.token_env)
            self._me = _in_trio(partial(_look_up, self.config.api_url, token))
        elif self.config.bot_token:
            return
        else:
            typer.echo(INTRODUCTION, err=True)
            token = self._ask_token()
            if token is None:
                return
        if (os.environ.get(VARIABLE, "").strip() or token) != token:
            raise Refused(
                f"{VARIABLE} names another bot, and comes before the config",
                way_out=f"unset {VARIABLE}",
            )
        self._keep({"bot_token": token}, drop=["bot_token_file"])

    def _ask_token(self) -> str | None:
        while True:
            token = ask_token()
            if token is None:
                return None
            try:
                self._me = _in_trio(partial(_look_up, self.config.api_url, token))
            except BadToken as error:
                hint(f"{error.what}; copy it again from @BotFather")
                continue
            return token

    def _settle_chat(self) -> None:
        wishes, config = self._wishes, self.config
        if wishes.allow:
            self._keep({"allowed_user_ids": sorted({*config.allowed_user_ids, *wishes.allow})})
        if wishes.chat_id is not None:
            self._keep({"chat_id": wishes.chat_id})
        elif config.chat_id is None:
            make_home(self._home)
            # Two receivers of one bot take each other's messages.
            with hold(self._home.folder, config.bot_token.partition(":")[0]):
                _in_trio(self._pair)

    async def _pair(self) -> None:
        config = self.config
        async with open_api(config.api_url, config.bot_token) as api:
            me = self._me = self._me or await look_up(api)
            chat_id = await pair(api, me, show=partial(_show_code, me.username), tell=hint)
            self._keep({"chat_id": chat_id})
            typer.echo(f"paired with chat {chat_id}")
            if not await greet(api, chat_id, WELCOME.format(host=socket.gethostname())):
                hint("the bot could not write to the chat just now")

    def _settle_engine(self) -> None:
        chosen = self._wishes.engine
        if chosen is None and self.config.default_engine is not None:
            return
        found = self._find_engines()
        self._keep_places(found)
        engines = [one.engine for one in found]
        if chosen is None:
            if not engines:
                hint(no_engine(self._by_choice))
                return
            chosen = _choose(engines)
        self._keep({"default_engine": chosen})
        typer.echo(f"{chosen} is the default engine")

    def _find_engines(self) -> tuple[Found, ...]:
        values = self._values()
        commands: dict[str, str] = {}
        for engine in self._by_choice:
            command = (as_table(values.get(engine)) or {}).get("command")
            commands[engine] = command if isinstance(command, str) and command else engine
        return find_engines(commands, self._find_paths())

    def _keep_places(self, found: Sequence[Found]) -> None:
        """Let the daemon find what only a login shell finds, however it is started.

        The PATH goes along: most of these programs look on it for their interpreter.
        """
        values = self._values()
        for one in found:
            table = as_table(values.get(one.engine)) or {}
            if not one.on_path and not table.get("command"):
                places = {
                    f"{one.engine}.command": str(one.program),
                    f"{one.engine}.env.PATH": self._find_paths().joined,
                }
                self._keep(places)
                typer.echo(f"{one.engine} is {one.program}, on the PATH of your login shell")

    def _find_paths(self) -> Paths:
        if self._paths is None:
            self._paths = _in_trio(partial(find_paths, os.environ, secret=self.config.bot_token))
            if not self._paths.told:
                hint("your login shell did not tell its PATH; programs are looked for on this one")
        return self._paths

    def _offer_service(self) -> bool:
        if not confirm("Let systemd run takopi, also after a restart of this machine?"):
            return False
        try:
            self._install_service()
        except TakopiError as error:
            hint(f"{error.what}; {error.way_out}" if error.way_out else error.what)
            return False
        return True

    def _install_service(self) -> None:
        from takopi.cli.service import install_service

        install_service(self._home, path=self._find_paths().joined, enable=True)

    def _read(self) -> Config:
        data = read_bytes(self._home.config_file) or b""
        return parse(data, self._names, environ=os.environ)

    def _values(self) -> Mapping[str, object]:
        return open_edit(self._home.config_file, self._names, environ=os.environ).values

    def _keep(self, values: Mapping[str, object], *, drop: Sequence[str] = ()) -> None:
        edit = open_edit(self._home.config_file, self._names, environ=os.environ)
        for key in drop:
            if key in edit.values:
                edit.unset(key)
        for key, value in values.items():
            edit.set(key, value)
        if self.whole:
            make_home(self._home)
            (self._home.folder / UNFINISHED).touch(PRIVATE_FILE)
        edit.save()
        self.config = self._read()


def _choose(engines: list[str]) -> str:
    if len(engines) == 1 or not on_terminal():
        return engines[0]
    while True:
        answer = ask(f"default engine: {', '.join(engines)}", default=engines[0])
        if answer in engines:
            return answer
        hint(f"type one of {', '.join(engines)}")


def _show_code(bot: str, code: str) -> None:
    half = len(code) // 2
    shown = f"{code[:half]} {code[half:]}"
    typer.echo(CODE.format(bot=bot, code=code, shown=shown, minutes=LIFE_S / 60))


async def _look_up(url: str, token: str) -> Me:
    async with open_api(url, token) as api:
        return await look_up(api)


def _in_trio(work: Callable[[], Awaitable[T]]) -> T:
    """What the work comes to; an error or a Ctrl-C as it is, not as a group."""
    try:
        return trio.run(work)
    except BaseExceptionGroup as group:
        raise plain(group) from None
