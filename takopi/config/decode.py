"""Turns TOML values into structs and reports every mistake on the way, not only the first."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from datetime import date, datetime, time
from pathlib import Path
from types import UnionType
from typing import Annotated, Final, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from takopi.core.errors import Problem

T = TypeVar("T", bound=msgspec.Struct)

_BAD: Final = object()


TAKE_IT_OUT = "take it out, or comment it out with #"
"""What mends a file that has a key nobody knows."""


def key_of(*parts: str) -> str:
    """A dotted key as it would be written in the file."""
    return ".".join(_bare_or_quoted(part) for part in parts)


def _bare_or_quoted(part: str) -> str:
    bare = part.isascii() and part.replace("-", "").replace("_", "").isalnum()
    return part if bare or part in {"-", "_"} else json.dumps(part, ensure_ascii=False)


def as_table(value: object) -> dict[str, object] | None:
    """The value, if it is a TOML table."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def unknown_key(key: str, name: str, known: Iterable[str]) -> Problem:
    """The problem of a key that takopi has never heard of."""
    near = difflib.get_close_matches(name.lower(), list(known), n=1)
    way_out = f"did you mean `{near[0]}`?" if near else TAKE_IT_OUT
    return Problem(key, "takopi knows no such key", way_out)


class Decoder:
    """Decodes one file. `problems` grows; `bad` has the keys whose value could not be used."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.bad: set[str] = set()

    def report(self, key: str, what: str, *, way_out: str = "") -> None:
        """Note a problem, and that the key's value is not to be relied upon."""
        self.problems.append(Problem(key, what, way_out))
        self.bad.add(key)

    def table(
        self, raw: object, shape: type[T], *parts: str, beside: Iterable[str] = ()
    ) -> T | None:
        """Decode a table; None if a required key cannot be had.

        A value that cannot be used is replaced by its default, so that the rest can be judged.
        `beside` are keys of this table that are somebody else's.
        """
        found = as_table(raw)
        if found is None:
            self.report(key_of(*parts), f"must be a table, not {_kind(raw)}")
            found = {}
        fields = msgspec.structs.fields(shape)
        names = {field.encode_name for field in fields}
        others = set(beside)
        for name in found:
            if name not in names | others:
                self.problems.append(unknown_key(key_of(*parts, name), name, names | others))
        values: dict[str, object] = {}
        complete = True
        for field in fields:
            name = field.encode_name
            if name in found:
                value = self._value(found[name], field.type, (*parts, name))
                if value is not _BAD:
                    values[field.name] = value
                    continue
            elif field.required:
                self.report(key_of(*parts, name), "is missing")
            complete = complete and not field.required
        if not complete:
            return None
        try:
            return shape(**values)
        except (ValueError, TypeError) as error:
            self.report(key_of(*parts), str(error))
            return None

    def _value(self, raw: object, hint: object, parts: tuple[str, ...]) -> object:
        core, least = _unwrap(hint)
        if core is Path:
            return self._path(raw, parts)
        if isinstance(core, type) and issubclass(core, msgspec.Struct):
            decoded = self.table(raw, core, *parts)
            return _BAD if decoded is None else decoded
        origin, args = get_origin(core), get_args(core)
        if origin is dict:
            return self._entries(raw, args[1], parts)
        if origin is tuple and args[1:] == (...,):
            return self._items(raw, args[0], parts, least=least)
        return self._leaf(raw, hint, parts)

    def _entries(self, raw: object, hint: object, parts: tuple[str, ...]) -> object:
        found = as_table(raw)
        if found is None:
            self.report(key_of(*parts), f"must be a table, not {_kind(raw)}")
            return _BAD
        pairs = {name: self._value(value, hint, (*parts, name)) for name, value in found.items()}
        return {name: value for name, value in pairs.items() if value is not _BAD}

    def _items(self, raw: object, hint: object, parts: tuple[str, ...], *, least: int) -> object:
        key = key_of(*parts)
        if not isinstance(raw, list):
            self.report(key, f"must be a list, not {_kind(raw)}", way_out="put it in [ ]")
            return _BAD
        if len(cast("list[object]", raw)) < least:
            self.report(key, "must not be empty")
            return _BAD
        items: list[object] = []
        for number, item in enumerate(cast("list[object]", raw), 1):
            try:
                items.append(msgspec.convert(item, hint))
            except msgspec.ValidationError as error:
                what, way_out = _complaint(item, hint, str(error))
                self.report(key, f"item {number} {what}", way_out=way_out)
        return _BAD if key in self.bad else tuple(items)

    def _leaf(self, raw: object, hint: object, parts: tuple[str, ...]) -> object:
        try:
            return msgspec.convert(raw, hint)
        except msgspec.ValidationError as error:
            what, way_out = _complaint(raw, hint, str(error))
            self.report(key_of(*parts), what, way_out=way_out)
            return _BAD

    def _path(self, raw: object, parts: tuple[str, ...]) -> object:
        key = key_of(*parts)
        if not isinstance(raw, str):
            self.report(key, f"must be text, not {_kind(raw)}", way_out="put it in quotes")
        elif not raw.strip():
            self.report(key, "must not be empty")
        elif "\0" in raw:
            self.report(key, "must be a path")
        else:
            try:
                path = Path(raw).expanduser()
            except RuntimeError:
                self.report(key, f"names a person this machine does not know: {json.dumps(raw)}")
                return _BAD
            if path.is_absolute():
                return path
            self.report(key, "must be an absolute path", way_out="begin it with / or ~/")
        return _BAD


def _unwrap(hint: object) -> tuple[object, int]:
    """The type without None and without bounds, and its least length. TOML has no null."""
    least = 0
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            for meta in get_args(hint)[1:]:
                least = getattr(meta, "min_length", None) or least
            hint = get_args(hint)[0]
        elif origin in {UnionType, Union}:
            present = [arg for arg in get_args(hint) if arg is not type(None)]
            if len(present) != 1:
                return hint, least
            hint = present[0]
        else:
            return hint, least


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case date() | datetime() | time():
            return "a date"
        case _:
            return "a table"


def _complaint(value: object, hint: object, fallback: str) -> tuple[str, str]:
    """What is wrong with a value, and the way out. Text is not shown: it may be a secret."""
    core, least = _unwrap(hint)
    if get_origin(core) is Literal:
        options = [json.dumps(option) for option in get_args(core)]
        if not isinstance(value, str):
            return f"must be one of {', '.join(options)}, not {_kind(value)}", ""
        near = difflib.get_close_matches(value.lower(), get_args(core), n=1)
        way_out = f"did you mean {json.dumps(near[0])}?" if near else ""
        return f"must be one of {', '.join(options)}, not {json.dumps(value)}", way_out
    if core is int or core is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        noun = _described(hint) or ("a whole number" if core is int else "a number") + _bounds(hint)
        return f"must be {noun}, not {value if number else _kind(value)}", ""
    if core is bool:
        return f"must be true or false, not {_kind(value)}", ""
    if core is str:
        if not isinstance(value, str):
            return f"must be text, not {_kind(value)}", "put it in quotes"
        if not value and least:
            return "must not be empty", ""
    return fallback, ""


def _described(hint: object) -> str:
    """What a number stands for, where that says more than its bounds."""
    return _meta(hint).description or ""


def _bounds(hint: object) -> str:
    meta = _meta(hint)
    low = f" above {meta.gt}" if meta.gt is not None else ""
    if meta.ge is not None:
        low = f" from {meta.ge}"
    return low + (f" to {meta.le}" if meta.le is not None else "")


def _meta(hint: object) -> msgspec.Meta:
    if get_origin(hint) in {UnionType, Union}:
        hint = next((arg for arg in get_args(hint) if get_origin(arg) is Annotated), hint)
    found = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((meta for meta in found if isinstance(meta, msgspec.Meta)), msgspec.Meta())
