"""What must hold between the keys of a config, beyond the type of each."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from takopi.config.decode import Decoder, key_of
from takopi.config.loaded import Names, Project
from takopi.config.schema import ConfigTable, ProjectTable

ALIAS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,31}")


def alias_fault(alias: str, names: Names) -> str:
    """Why a project cannot go by this alias; empty if it can."""
    lowered = alias.lower()
    if not alias.strip():
        return "an alias must not be empty"
    if not ALIAS.fullmatch(alias):
        return (
            f"{json.dumps(alias)} cannot be an alias: use letters, digits, _ and -, "
            "at most 32 of them, and no - in front"
        )
    if lowered in {engine.lower() for engine in names.engines}:
        return f"{json.dumps(alias)} cannot be an alias: /{lowered} is an engine"
    if lowered in {command.lower() for command in names.commands}:
        return f"{json.dumps(alias)} cannot be an alias: /{lowered} is a command"
    return ""


def same_alias(alias: str, aliases: Iterable[str]) -> str | None:
    """The one of `aliases` that is equal to `alias` but for case."""
    return next((other for other in aliases if other.lower() == alias.lower()), None)


def check_aliases(aliases: list[str], names: Names, decoder: Decoder) -> None:
    """Every alias can be written as `/alias`, and means one thing."""
    for number, alias in enumerate(aliases):
        if fault := alias_fault(alias, names):
            decoder.report(key_of("projects", alias), fault, way_out="give it another name")
        elif twin := same_alias(alias, aliases[:number]):
            decoder.report(
                key_of("projects", alias),
                f"is the same alias as {twin}, as case does not matter",
                way_out="give one of them another name",
            )


def find_default_project(
    wanted: str | None, aliases: list[str], names: Names, *, decoder: Decoder
) -> str | None:
    """The default project as its alias is spelled."""
    if wanted is None or "projects" in decoder.bad:
        return None
    alias = same_alias(wanted, aliases)
    if alias is None:
        near = difflib.get_close_matches(wanted, aliases, n=1)
        way_out = "set it to a configured alias, or take it out"
        if near:
            way_out = f"did you mean {json.dumps(near[0])}?"
        elif not alias_fault(wanted, names):
            way_out = f"run `takopi init {wanted}` in its folder"
        decoder.report("default_project", f"no project {json.dumps(wanted)}", way_out=way_out)
    return alias


def check_engine(engine: str | None, names: Names, decoder: Decoder, *, key: str) -> None:
    """A default engine is one that there is."""
    if engine is None or engine in names.engines:
        return
    near = difflib.get_close_matches(engine.lower(), list(names.engines), n=1)
    way_out = f"use one of {', '.join(names.engines)}"
    if near:
        way_out = f"did you mean {json.dumps(near[0])}?"
    decoder.report(key, f"no engine {json.dumps(engine)}", way_out=way_out)


def check_chats(table: ConfigTable, decoder: Decoder) -> None:
    """No chat belongs to two projects, and a group lets in only those who are named."""
    owners: dict[int, str] = {}
    for alias, project in table.projects.items():
        if project.chat_id is None:
            continue
        key = key_of("projects", alias, "chat_id")
        owner = owners.setdefault(project.chat_id, alias)
        if owner != alias:
            decoder.report(
                key,
                f"is the chat of project {owner} already",
                way_out="a chat belongs to one project: take it out of one of them",
            )
        _check_chat(project.chat_id, table, decoder, key=key)
    if table.chat_id is not None:
        _check_chat(table.chat_id, table, decoder, key="chat_id")


def _check_chat(chat_id: int, table: ConfigTable, decoder: Decoder, *, key: str) -> None:
    if chat_id == 0:
        decoder.report(key, "must not be 0", way_out="use the id of your chat with the bot")
    if chat_id < 0 and not table.allowed_user_ids and "allowed_user_ids" not in decoder.bad:
        decoder.report(
            key,
            "is a group, and nobody in it is allowed",
            way_out="set allowed_user_ids to the ids of those who may use takopi",
        )


def check_urls(table: ConfigTable, decoder: Decoder) -> None:
    """An address is one that HTTP can be spoken with."""
    urls = {
        "api_url": table.api_url,
        "oneshot.base_url": table.oneshot.base_url,
        "voice.base_url": table.voice.base_url,
    }
    for key, url in urls.items():
        if url is not None:
            _check_url(url, decoder, key=key)


def _check_url(url: str, decoder: Decoder, *, key: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        decoder.report(key, "must be an address", way_out="begin it with https:// or http://")


def check_mcp(table: ConfigTable, aliases: list[str], decoder: Decoder) -> None:
    """A server can be reached in one way, and its name tells its tools from those of others."""
    for name, server in table.mcp.servers.items():
        key = key_of("mcp", "servers", name)
        if not ALIAS.fullmatch(name) or "__" in name or name.endswith("_"):
            decoder.report(
                key,
                f"{json.dumps(name)} cannot be the name of a server: use letters, digits, - and"
                " single _, at most 32 of them",
                way_out="give it another name",
            )
        ways = {"command": server.command, "url": server.url}
        unusable = {key_of("mcp", "servers", name, way) for way in ways} & decoder.bad
        if sum(way is not None for way in ways.values()) != 1 and not unusable:
            decoder.report(
                key, "needs either a command or a url", way_out="set one of them, and only one"
            )
        if server.url is not None:
            _check_url(server.url, decoder, key=f"{key}.url")
        for alias in server.projects:
            if same_alias(alias, aliases) is None and "projects" not in decoder.bad:
                decoder.report(
                    f"{key}.projects",
                    f"no project {json.dumps(alias)}",
                    way_out="name configured aliases, or take it out",
                )


def check_voice(table: ConfigTable, decoder: Decoder) -> None:
    """Voice notes are written down in one way."""
    if table.voice.base_url is not None and table.voice.command:
        decoder.report("voice", "has a base_url and a command", way_out="take one of them out")


def check_files(table: ConfigTable, decoder: Decoder) -> None:
    """Files come into a folder of the project, not into git's own; patterns mean what they say."""
    parts = PurePosixPath(table.files.uploads_dir).parts
    outside = not parts or parts[0] == "/" or ".." in parts or "\0" in table.files.uploads_dir
    if outside or ".git" in {part.lower() for part in parts}:
        decoder.report(
            "files.uploads_dir",
            "must be a folder inside of the one that is worked in",
            way_out='use a relative path without .., like ".uploads"',
        )
    for pattern in table.files.deny:
        if "[" in pattern:
            decoder.report(
                "files.deny",
                f"{json.dumps(pattern)} has brackets, which mean nothing in a pattern",
                way_out="use * or ?, or write a pattern for each name",
            )


def resolve_project(
    alias: str, table: ProjectTable, names: Names, *, decoder: Decoder
) -> Project | None:
    """The project with its paths made whole; None if they cannot be."""
    check_engine(
        table.default_engine, names, decoder, key=key_of("projects", alias, "default_engine")
    )
    base = table.worktree_base
    if base is not None and (base.startswith("-") or re.search(r"\s", base)):
        decoder.report(key_of("projects", alias, "worktree_base"), "must be the name of a branch")
    worktrees_key = key_of("projects", alias, "worktrees_dir")
    try:
        folder = Path(table.worktrees_dir).expanduser()
    except RuntimeError:
        decoder.report(worktrees_key, "names a person this machine does not know")
        return None
    if not table.worktrees_dir.strip() or "\0" in table.worktrees_dir:
        decoder.report(worktrees_key, "must be the name of a folder")
    return Project(
        alias=alias,
        path=table.path,
        worktrees_dir=table.path / folder,
        default_engine=table.default_engine,
        worktree_base=base,
        chat_id=table.chat_id,
    )
