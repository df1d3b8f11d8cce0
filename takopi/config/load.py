"""Reads takopi.toml into a `Config`, or says everything that is wrong with it at once."""

from __future__ import annotations

import contextlib
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path

from takopi.config.decode import Decoder, as_table
from takopi.config.loaded import Config, Names
from takopi.config.paths import CONFIG_NAME, mode_problem
from takopi.config.rules import (
    check_aliases,
    check_chats,
    check_engine,
    check_files,
    check_mcp,
    check_urls,
    check_voice,
    find_default_project,
    resolve_project,
)
from takopi.config.schema import ConfigTable, EngineSettings
from takopi.config.token import find_token
from takopi.core.errors import ConfigInvalid, Problem

MEND_IT = "mend it there; `takopi config path` prints the place of the file"


def load(path: Path, names: Names, *, environ: Mapping[str, str], to_run: bool = False) -> Config:
    """The config at `path`; `ConfigInvalid` with every problem if it cannot be used.

    `to_run` also asks for what a daemon needs: a token and a chat where telegram is on.
    """
    data = read_bytes(path)
    if data is None:
        way_out = "`takopi init` makes it; `takopi demo` needs none"
        raise ConfigInvalid((Problem("", f"there is no {path}", way_out),))
    problems = mode_problems(path)
    try:
        config = parse(data, names, environ=environ, to_run=to_run)
    except ConfigInvalid as error:
        raise ConfigInvalid((*problems, *error.problems)) from error
    if problems:
        raise ConfigInvalid(problems)
    return config


def read_bytes(path: Path) -> bytes | None:
    """The bytes of the file; None if there is none."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = Problem("", f"{path} cannot be read: {error.strerror}")
        raise ConfigInvalid((problem,)) from error
    noun = "a folder" if stat.S_ISDIR(mode) else "not a file"
    raise ConfigInvalid((Problem("", f"{path} is {noun}", "move it out of the way"),))


def mode_problems(path: Path) -> tuple[Problem, ...]:
    """What is wrong with who may read the file and its folder; what is not there is not wrong."""
    found: list[Problem] = []
    for place in (path.parent, path):
        with contextlib.suppress(OSError):
            if problem := mode_problem(place, place.stat().st_mode):
                found.append(problem)
    return tuple(found)


def find_problems(
    data: bytes, names: Names, *, environ: Mapping[str, str], to_run: bool = False
) -> tuple[Problem, ...]:
    """Everything that is wrong with the bytes of a file."""
    try:
        parse(data, names, environ=environ, to_run=to_run)
    except ConfigInvalid as error:
        return error.problems
    return ()


def parse(data: bytes, names: Names, *, environ: Mapping[str, str], to_run: bool = False) -> Config:
    """The config that the bytes of a file mean."""
    raw = parse_toml(data)
    decoder = Decoder()
    table = decoder.table(raw, ConfigTable, beside=names.engines)
    if table is None:
        raise ConfigInvalid(tuple(decoder.problems))
    aliases = list(as_table(raw.get("projects")) or {})
    check_aliases(aliases, names, decoder)
    default_project = find_default_project(table.default_project, aliases, names, decoder=decoder)
    check_engine(table.default_engine, names, decoder, key="default_engine")
    check_chats(table, decoder)
    check_urls(table, decoder)
    check_mcp(table, aliases, decoder)
    check_voice(table, decoder)
    check_files(table, decoder)
    projects = {
        alias: project
        for alias, entry in table.projects.items()
        if (project := resolve_project(alias, entry, names, decoder=decoder))
    }
    engines: dict[str, EngineSettings] = {}
    for engine, shape in names.engines.items():
        if settings := decoder.table(raw.get(engine, {}), shape, engine):
            engines[engine] = settings
    token = find_token(table, environ, decoder)
    if to_run and "telegram" in table.transports:
        _require_telegram(table, decoder, token=token)
    if decoder.problems:
        raise ConfigInvalid(tuple(decoder.problems))
    return Config(
        bot_token=token,
        bot_token_file=table.bot_token_file,
        chat_id=table.chat_id,
        allowed_user_ids=frozenset(table.allowed_user_ids),
        admin_user_ids=frozenset(table.admin_user_ids),
        default_engine=table.default_engine,
        default_project=default_project,
        session_mode=table.session_mode,
        api_url=table.api_url.rstrip("/"),
        transports=tuple(dict.fromkeys(table.transports)),
        projects=projects,
        web=table.web,
        oneshot=table.oneshot,
        interview=table.interview,
        mcp=table.mcp,
        limits=table.limits,
        drafts=table.drafts,
        voice=table.voice,
        files=table.files,
        sessions=table.sessions,
        engines=engines,
    )


def _require_telegram(table: ConfigTable, decoder: Decoder, *, token: str) -> None:
    if not token and not decoder.bad & {"bot_token", "bot_token_file", "TAKOPI_BOT_TOKEN"}:
        decoder.report(
            "bot_token",
            "is missing, and the telegram transport needs it",
            way_out="`takopi config set bot_token` with the one that @BotFather gave you",
        )
    if table.chat_id is None and "chat_id" not in decoder.bad:
        decoder.report(
            "chat_id",
            "is missing, and the telegram transport needs it",
            way_out="`takopi config set chat_id ID` with the id of your chat",
        )


def parse_toml(data: bytes) -> dict[str, object]:
    """The TOML of a file; `ConfigInvalid` with line and column if it is none."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        problem = Problem(
            "", f"{CONFIG_NAME}, {_place(data[: error.start])}: not UTF-8", "save it as UTF-8"
        )
        raise ConfigInvalid((problem,)) from error
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        problem = Problem("", f"{CONFIG_NAME}: not TOML: nested too deeply", MEND_IT)
        raise ConfigInvalid((problem,)) from error
    except ValueError as error:
        # tomllib says the place at the end of its message, and says "end of document" for the last.
        what, _, place = str(error).partition(" (at ")
        if not re.fullmatch(r"line \d+, column \d+\)", place):
            place = _place(data) + ")"
        said = f"{CONFIG_NAME}, {place[:-1]}: not TOML: {what[:1].lower()}{what[1:]}"
        problem = Problem("", said, MEND_IT)
        raise ConfigInvalid((problem,)) from error


def _place(before: bytes) -> str:
    line = before.count(b"\n") + 1
    column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
    return f"line {line}, column {column}"
