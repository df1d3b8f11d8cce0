"""Takes a bot token only from where others do not see it, and asks Telegram which bot it is for."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
import typer

from takopi.cli.errors import hint
from takopi.cli.terminal import ask_hidden
from takopi.config.paths import mode_problem
from takopi.config.token import MAX_BYTES, TOKEN
from takopi.core.errors import BadToken, Refused, TryLater, Unfit, Unreachable
from takopi.kit.http import open_http
from takopi.telegram.api import Api, Me

ANSWER_S = 20.0
"""How long Telegram may take for an answer that it has at once."""

COPY_IT = "copy it from @BotFather: digits, a colon, then the rest"


def ask_token() -> str | None:
    """A token that the person types, unseen, and that looks like one; None for not now."""
    while True:
        try:
            token = ask_hidden("bot token (not shown; Enter for not now)")
        except EOFError:
            raise typer.Abort from None
        if not token:
            return None
        if TOKEN.fullmatch(token):
            return token
        hint(f"that is no bot token; {COPY_IT}")


def read_token(*, file: str | None, variable: str | None) -> str:
    """The token in a file, on stdin (`-`) or in a variable; nothing of it is ever repeated."""
    token = _from_variable(variable) if variable is not None else _from_file(file or "-")
    if not TOKEN.fullmatch(token):
        raise Refused("what came in is no bot token", way_out=COPY_IT)
    return token


def _from_variable(name: str) -> str:
    token = os.environ.get(name, "").strip()
    if not token:
        raise Refused(f"the variable {name} is not set", way_out="--token-env NAME names one")
    return token


def _from_file(name: str) -> str:
    if name == "-":
        return _typed() if sys.stdin and sys.stdin.isatty() else _piped()
    try:
        with Path(name).expanduser().open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            data = opened.read(MAX_BYTES)
    except (OSError, RuntimeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "there is no such place"
        raise Refused(f"{name} cannot be read: {why}", way_out="--token-file FILE") from error
    # A pipe, as of a password store, is gone after this.
    if stat.S_ISREG(mode) and (problem := mode_problem(Path(name), mode)):
        hint(f"{problem.what}, and the token with it: {problem.way_out}")
    return data.decode("utf-8", "replace").strip()


def _typed() -> str:
    try:
        return ask_hidden("bot token (not shown)")
    except EOFError:
        raise typer.Abort from None


def _piped() -> str:
    return (sys.stdin.read(MAX_BYTES) if sys.stdin else "").strip()


@asynccontextmanager
async def open_api(url: str, token: str) -> AsyncGenerator[Api, None]:
    """The Bot API for as long as the block lasts."""
    async with open_http(max_connections=2) as http:
        yield Api(http, url=url.rstrip("/"), token=token)


async def look_up(api: Api) -> Me:
    """Which bot it is; `BadToken` if there is none."""
    try:
        with trio.fail_after(ANSWER_S):
            return await api.get_me()
    except BadToken as error:
        raise BadToken(
            "Telegram does not know a bot with this token",
            way_out="copy it again from @BotFather, and run `takopi init --token-file -`",
        ) from error
    except TryLater as error:
        raise Unfit(
            f"Telegram wants to be left alone for {error.retry_after_s:.0f} s",
            way_out="wait that long, and run `takopi init` again",
        ) from error
    except (Unreachable, trio.TooSlowError) as error:
        why = error.what if isinstance(error, Unreachable) else "no answer in time"
        raise Unfit(
            f"Telegram cannot be reached: {why}",
            way_out="see to the network of this machine, and run `takopi init` again",
        ) from error
