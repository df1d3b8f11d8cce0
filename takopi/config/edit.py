"""Edits takopi.toml with the person's comments and order kept, and never makes it worse.

Nothing is written before `save`. It refuses a change that brings in a problem, and one made from
a file that somebody else has changed since.
"""

from __future__ import annotations

import copy
import fcntl
import os
import tomllib
from collections.abc import Callable, Generator, Mapping, MutableMapping, MutableSequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import cast

import tomlkit
import tomlkit.items
from tomlkit.exceptions import TOMLKitError

from takopi.config.decode import as_table, key_of
from takopi.config.load import find_problems, parse_toml, read_bytes
from takopi.config.loaded import Names
from takopi.config.paths import Home, make_home, mode_problem
from takopi.config.rules import same_alias
from takopi.core.errors import ConfigInvalid, Problem, Refused, Unfit
from takopi.kit.atomic import replace_file

Tables = MutableMapping[str, object]


class ConfigEdit:
    """One edit of the file: made by `open_edit`, changed, then saved or forgotten.

    `values` is what the file will say, as plain data.
    """

    def __init__(
        self, path: Path, data: bytes | None, names: Names, *, environ: Mapping[str, str]
    ) -> None:
        self._path = path
        self._data = data
        self._names = names
        self._environ = environ
        self.values = parse_toml(data or b"")
        self._text = (data or b"").decode()

    def get(self, key: str) -> object:
        """The value of a dotted key."""
        value: object = self.values
        for part in split_key(key):
            table = as_table(value)
            if table is None or part not in table:
                raise Refused(f"{key} is not set", way_out="`takopi config list` shows what is")
            value = table[part]
        return value

    def set(self, key: str, value: object) -> None:
        """Give a dotted key a value; the tables on its way are made if they are not there."""
        self._set(split_key(key), value)

    def unset(self, key: str) -> None:
        """Take a dotted key out, or a whole table."""
        self.get(key)
        self._unset(split_key(key))

    def put_project(self, alias: str, values: Mapping[str, object | None]) -> str:
        """Add or update a project, and say how its alias is spelled in the file.

        None takes a key out; a key that is not named stays.
        """
        projects = as_table(self.values.get("projects", {})) or {}
        spelled = same_alias(alias, projects) or alias
        for name, value in values.items():
            if value is not None:
                self._set(["projects", spelled, name], value)
            elif name in (as_table(projects.get(spelled)) or {}):
                self._unset(["projects", spelled, name])
        return spelled

    def save(self) -> None:
        """Write the file, for its owner alone, or raise and leave it as it is."""
        data = self._text.encode()
        before = find_problems(self._data or b"", self._names, environ=self._environ)
        after = find_problems(data, self._names, environ=self._environ)
        if new := tuple(problem for problem in after if problem not in before):
            raise ConfigInvalid(new)
        folder = self._path.parent
        make_home(Home(folder))
        if problem := mode_problem(folder, folder.stat().st_mode):
            raise ConfigInvalid((problem,))
        with _alone(folder):
            if read_bytes(self._path) != self._data:
                raise Refused(
                    f"{self._path} was changed by somebody else meanwhile",
                    way_out="nothing was written; run the command again",
                )
            try:
                replace_file(self._path, data)
            except OSError as error:
                raise Unfit(
                    f"{self._path} cannot be written: {error.strerror}",
                    way_out=f"the file is as it was; see `df -h {folder}` and `ls -ld {folder}`",
                ) from error
        self._data = data

    def _set(self, parts: list[str], value: object) -> None:
        meant = copy.deepcopy(self.values)
        _put(meant, parts, copy.deepcopy(value), new_table=dict[str, object])
        written = _written(value)
        # A table of its own reads best, but cannot follow keys that are written with dots.
        for new_table in (tomlkit.table, tomlkit.inline_table):
            make = cast("Callable[[], object]", new_table)
            if self._rewrite(partial(_put, parts=parts, value=written, new_table=make), meant):
                return
        raise _by_hand(self._path)

    def _unset(self, parts: list[str]) -> None:
        meant = copy.deepcopy(self.values)
        _drop(meant, parts)
        if not self._rewrite(partial(_drop, parts=parts), meant):
            raise _by_hand(self._path)

    def _rewrite(self, change: Callable[[Tables], None], meant: dict[str, object]) -> bool:
        """Change the text, if the text then says what is meant."""
        try:
            document = tomlkit.parse(self._text)
            change(cast("Tables", document))
            text = document.as_string()
            said = parse_toml(text.encode())
        except (ConfigInvalid, TOMLKitError, ValueError, KeyError):
            return False
        if _without_empty(said) != _without_empty(meant):
            return False
        self._text, self.values = text, said
        return True


def _put(
    tables: Tables, parts: list[str], value: object, *, new_table: Callable[[], object]
) -> None:
    for depth, part in enumerate(parts[:-1], 1):
        inner = tables.setdefault(part, new_table())
        if not isinstance(inner, MutableMapping):
            raise Refused(f"{key_of(*parts[:depth])} is not a table")
        # What was put in is not what is kept: the container has its own.
        tables = cast("Tables", tables[part])
    tables[parts[-1]] = value


def _drop(tables: Tables, parts: list[str]) -> None:
    for part in parts[:-1]:
        tables = cast("Tables", tables[part])
    del tables[parts[-1]]


def _without_empty(table: dict[str, object]) -> dict[str, object]:
    """The same without empty tables: one that has lost its last key may vanish from the text."""
    pairs = {
        name: _without_empty(inner) if (inner := as_table(value)) is not None else value
        for name, value in table.items()
    }
    return {name: value for name, value in pairs.items() if value != {}}


def open_edit(path: Path, names: Names, *, environ: Mapping[str, str]) -> ConfigEdit:
    """Read the file for an edit; one that is not there is read as empty."""
    return ConfigEdit(path, read_bytes(path), names, environ=environ)


def split_key(key: str) -> list[str]:
    """The parts of a dotted key, quoted where TOML wants quotes."""
    parts: list[str] = []
    value: object = None
    if "\n" not in key:
        with suppress(tomllib.TOMLDecodeError):
            value = tomllib.loads(f"{key} = 0")
    while table := as_table(value):
        if len(table) != 1:
            break
        part, value = next(iter(table.items()))
        parts.append(part)
    if not parts or value != 0:
        raise Refused(f"{key!r} is not a key", way_out="write it like limits.max_runs")
    return parts


def to_toml(value: object) -> str:
    """A value as it would be written behind its key, on one line."""
    return cast("tomlkit.items.Item", _written(value)).as_string()


def _written(value: object) -> object:
    if isinstance(value, list):
        array = cast("MutableSequence[object]", tomlkit.array())
        for item in cast("list[object]", value):
            array.append(_written(item))
        return array
    table = as_table(value)
    if table is None:
        return tomlkit.item(value)
    inline = cast("Tables", tomlkit.inline_table())
    for name, inner in table.items():
        inline[name] = _written(inner)
    return inline


def _by_hand(path: Path) -> ConfigInvalid:
    return ConfigInvalid((Problem("", f"{path} cannot be edited by takopi", "edit it by hand"),))


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Keep other takopis from writing between our last look and our write."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(
                f"another takopi is writing in {folder}", way_out="run the command again"
            ) from error
        yield
    finally:
        os.close(fd)
