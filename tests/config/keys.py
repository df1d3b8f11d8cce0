"""Every key that a config may have, found by walking the structs that it is decoded into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast, get_args, get_origin

import msgspec

from takopi.config.decode import as_table
from takopi.config.schema import ConfigTable, EngineSettings
from takopi.engines.catalog import load_catalog

Key = tuple[str, ...]
ANY = "*"
"""Stands for a name that the person chooses."""


def every_key() -> dict[Key, object]:
    """The default of every key; None where there is none."""
    return dict(_walk(ConfigTable)) | {
        key: default
        for engine, settings in load_catalog(Path()).settings_types().items()
        for key, default in _walk(settings, engine)
    }


def shared_names() -> set[str]:
    """The keys that the table of each engine has."""
    return {field.encode_name for field in msgspec.structs.fields(EngineSettings)}


def _walk(shape: type[msgspec.Struct], *above: str) -> Iterator[tuple[Key, object]]:
    for field in msgspec.structs.fields(shape):
        key = (*above, field.encode_name)
        kind, args = field.type, get_args(field.type)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from _walk(kind, *key)
        elif get_origin(kind) is dict and issubclass(args[1], msgspec.Struct):
            yield from _walk(args[1], *key, ANY)
        else:
            yield key, _default(field)


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return cast("Callable[[], object]", field.default_factory)()
    default: object = field.default
    if default is msgspec.NODEFAULT:
        return None
    return list(cast("tuple[object, ...]", default)) if isinstance(default, tuple) else default


def find_all(table: dict[str, object], key: Key) -> list[object]:
    """The values that a table of TOML has under a key, several where the person chose names."""
    found: list[object] = [table]
    for part in key:
        tables = [inner for value in found if (inner := as_table(value)) is not None]
        found = [inner for one in tables for name, inner in one.items() if part in {ANY, name}]
    return found
